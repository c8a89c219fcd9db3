"""Gangs that start together: who is there, what a member waits for, and how far all are."""
