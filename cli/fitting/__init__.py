"""Answers whether Ray clusters would fit now, with the coordinator's state machine on a picture."""
