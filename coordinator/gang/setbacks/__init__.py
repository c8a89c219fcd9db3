"""Counts of what went wrong with one gang: they outlive a leader, and it comes after others."""
