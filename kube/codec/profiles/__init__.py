"""Reads scheduler profiles, and keeps the parts that verdicts depend on."""
