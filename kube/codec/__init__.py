"""Turns objects of Kubernetes into values of the core, and back. Pure."""
