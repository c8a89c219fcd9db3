"""Turns objects into reports. Pure."""
