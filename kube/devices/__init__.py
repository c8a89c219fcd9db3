"""Reads devices by claim: slices, classes, claims, taint rules, selectors. Pure."""
