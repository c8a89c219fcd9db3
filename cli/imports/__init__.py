"""Queues of other systems, read into GangQueues: pure, from decoded objects to structs."""
