"""Reads objects of the cluster, with the rights of the caller."""
