"""Reads volumes: claims, classes and drivers, and what pods mount of them."""
