"""Prints reports: as tables, JSON or YAML."""
