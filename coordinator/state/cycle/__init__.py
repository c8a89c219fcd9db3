"""A scheduling cycle: what is asked of the core, and what follows from its answers."""
