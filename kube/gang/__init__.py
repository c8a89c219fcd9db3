"""Reads a gang from the object that defines it, whatever its kind."""
