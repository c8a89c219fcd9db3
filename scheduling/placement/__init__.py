"""Placement of a whole gang: every pod gets a node, or none does."""
