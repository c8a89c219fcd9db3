"""What the leader knows of one gang, and the rules about it."""
