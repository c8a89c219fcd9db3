"""Prints forecasts."""
