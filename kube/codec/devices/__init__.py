"""Reads what pods say of devices by claim."""
