"""Answers what the page asks about the cluster, with the rights of whoever asks."""
