"""Writes into waiting Gangs when they will start."""
