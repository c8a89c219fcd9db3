"""Reviews Ray objects that may have to be sent to other clusters."""
