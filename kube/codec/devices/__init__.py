"""Reads the device claims of pods."""
