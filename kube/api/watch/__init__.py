"""Watches: what is kept equal to the objects of the API server, and who is told of changes."""
