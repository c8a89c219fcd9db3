"""Counts of a gang's failures: they put the gang behind others, and outlive the leader."""
