"""Runs the coordinator's state machine forward on a picture of the cluster. Pure."""
