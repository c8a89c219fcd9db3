"""Scores: which of the nodes that fit a pod goes to."""
