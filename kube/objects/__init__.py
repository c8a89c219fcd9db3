"""Decodes objects of Kubernetes, KubeRay and Muster, and defines the CRDs. Pure."""
