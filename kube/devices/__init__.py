"""Reads devices by claim: slices, classes, claims, taint rules, and the selectors in them. Pure."""
