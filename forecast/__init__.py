"""Runs the coordinator's state machine forward on a picture. Pure."""
