"""The adapter: everything that knows how Kubernetes and KubeRay spell things, and how to ask.

Pure: `objects`, `ray`, `codec`. Talking to the API server: `api`.
"""
