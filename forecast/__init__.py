"""Runs the coordinator's state machine forward on a picture: when waiting gangs start. Pure."""
