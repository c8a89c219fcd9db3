"""Adapts Kubernetes and KubeRay: their objects, how they are spelled, and how they are asked for.

Pure: `objects`, `ray`, `codec`. Talking to the API server: `api`.
"""
