"""Reads KubeRay's objects: which clusters are gangs, and what they ask for. Pure."""
