"""Gangs that start together: their members, what each waits for, their start, and their end."""
