"""Identifies callers of the page, gives each their own rights, and refuses forged requests."""
