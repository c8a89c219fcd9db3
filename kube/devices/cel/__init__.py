"""Evaluates the part of CEL that selectors of devices use, within a budget of steps."""
