"""What was seen of the cluster."""
