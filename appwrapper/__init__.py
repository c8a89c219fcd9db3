"""Reads AppWrappers of either generation, creates what they wrap, and words their status. Pure."""
