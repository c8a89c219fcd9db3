"""Turns queues of other systems into GangQueues. Pure."""
