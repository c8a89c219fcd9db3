"""Defragmentation: gangs to move so that another starts."""
