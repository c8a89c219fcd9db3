"""A scheduling cycle: the question to `scheduling`, and what follows from its answers."""
