"""Sends Ray objects to other clusters."""
