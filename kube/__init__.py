"""Adapts Kubernetes and KubeRay: their objects, and calls to the API server.

Pure: `objects`, `ray`, `codec`. `api` calls the API server.
"""
