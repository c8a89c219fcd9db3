"""Remembers passed pods until the watches show what became of them."""
