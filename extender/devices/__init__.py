"""Keeps devices by claim for gangs."""
