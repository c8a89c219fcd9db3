"""Runs the coordinator's state machine forward on a picture: when gangs start, and what if. Pure."""
