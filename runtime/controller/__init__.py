"""Runs a state machine: its loop, the order of its writes, and the writes under way."""
