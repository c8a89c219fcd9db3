"""The adapter: everything that knows how Kubernetes and KubeRay spell things, and how to ask.

Pure: names, objects, codec, ray, patches. Talking to the API server: errors, auth, client,
watch, leader.
"""
