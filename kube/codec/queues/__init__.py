"""Reads GangQueues into values of the core."""
