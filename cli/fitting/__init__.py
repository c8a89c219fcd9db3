"""Answers whether Ray clusters would fit now, by the coordinator's state machine."""
