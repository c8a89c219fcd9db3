"""Watches objects of the API server: mirrors them, and reports their changes."""
