"""What every program needs: settings, HTTPS servers, certificates. Nothing of Kubernetes."""
