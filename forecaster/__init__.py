"""Forecasts when waiting gangs will start, and writes that into their Gangs."""
