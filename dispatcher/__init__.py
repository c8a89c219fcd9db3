"""Several Kubernetes clusters: a gang goes to the one where all of it fits, and runs once."""
