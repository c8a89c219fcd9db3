"""Turns objects into reports. Pure, so that a report can be checked without a cluster."""
