"""Reads what forecasts are run on, with the rights of the caller."""
