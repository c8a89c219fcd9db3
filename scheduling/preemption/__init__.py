"""Preemption: which running pods make room for a waiting gang."""
