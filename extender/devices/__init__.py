"""Keeps devices by claim for gangs: who is to get some, and whether another pod leaves enough."""
