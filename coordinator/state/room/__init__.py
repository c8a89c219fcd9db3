"""Room on nodes that is kept for pods that are not bound yet."""
