"""Talks to API servers."""
