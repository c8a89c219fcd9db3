"""Backfill: keeps room for blocked gangs, and lets other gangs use the room until then."""
