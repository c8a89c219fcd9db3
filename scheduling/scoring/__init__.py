"""Scores: ranks the nodes that fit a pod."""
