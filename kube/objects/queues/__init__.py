"""GangQueues as they are stored: their spec, and what their status remembers."""
