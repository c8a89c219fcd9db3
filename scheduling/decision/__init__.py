"""Decides within a cycle: one gang, room by preemption, and refusals of those left undecided."""
