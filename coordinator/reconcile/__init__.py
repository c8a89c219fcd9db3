"""The steps that bring one gang forward, and the status that reports its state."""
