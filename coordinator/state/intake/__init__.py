"""Takes events in: changes what is known, and marks the gangs that they concern."""
