"""Backfill: room that a blocked gang is to have later, and who may use it until then."""
