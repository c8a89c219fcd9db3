"""Adapts Kubernetes and KubeRay: decodes and encodes their objects, and calls the API server.

Pure: `objects`, `ray`, `codec`. `api` calls the API server.
"""
