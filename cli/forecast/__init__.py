"""Runs the coordinator's state machine forward on a picture, also with what-if changes. Pure."""
