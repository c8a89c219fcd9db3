"""Calls the API server: credentials, errors, watches, leader election."""
