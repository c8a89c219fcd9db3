"""Queues: which gang is next, and how much its queue may hold."""
