"""Reads AppWrappers of both generations, builds their objects, and words their status. Pure."""
