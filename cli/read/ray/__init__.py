"""Reads Ray objects, their jobs and their logs."""
