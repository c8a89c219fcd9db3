"""Code shared by every program: settings, HTTPS servers, certificates. Nothing of Kubernetes."""
