"""Sends RayClusters to other clusters."""
