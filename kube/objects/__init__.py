"""Objects of Kubernetes, KubeRay and Muster: the fields that are read, and the CRDs. Pure."""
