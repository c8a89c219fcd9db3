"""What a placement promises to which pods: slots, their order of release, replicas. Pure."""
