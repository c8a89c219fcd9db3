"""Several Kubernetes clusters, so far the protocol alone: a gang runs on one of them, once."""
