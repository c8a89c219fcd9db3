"""Writes to a cluster on behalf of people; nothing else of the command line does."""
