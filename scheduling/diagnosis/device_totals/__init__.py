"""Counts devices that belong to no single node: shared ones, and those that several nodes reach."""
