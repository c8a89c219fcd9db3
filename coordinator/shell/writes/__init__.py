"""Sends the actions of the state machine to the API server, and reports how they ended."""
