"""Observed facts of the cluster."""
