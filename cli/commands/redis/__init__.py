"""The commands about the built-in Redis."""
