"""Takes in events: updates the known facts, and marks the gangs that an event concerns."""
