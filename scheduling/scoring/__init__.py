"""Which of the nodes that fit a pod should take."""
