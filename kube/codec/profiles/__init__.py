"""Reads the profiles of schedulers, and holds what a verdict takes from them."""
