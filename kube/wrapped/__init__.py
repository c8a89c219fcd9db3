"""Reads AppWrappers of either generation, and words their status. Pure."""
