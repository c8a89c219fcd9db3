"""Writes to a cluster for people; no other part of `muster` does."""
