"""Foresees the pods of a gang, and what its namespace admits. Pure."""
