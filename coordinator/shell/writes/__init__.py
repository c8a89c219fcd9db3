"""Sends what the state machine asks for to the API server, and reports how it ended."""
