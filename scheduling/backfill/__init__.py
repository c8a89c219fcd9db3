"""Backfill: room that a blocked gang is to have later, and the gangs that may use it until then."""
