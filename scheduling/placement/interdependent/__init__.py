"""Placement of gangs whose own pods constrain each other."""
