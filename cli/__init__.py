"""The command `muster`, for people."""
