"""Talks to the API server: credentials, calls, errors, watches, leader election."""
