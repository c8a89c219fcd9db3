"""An AppWrapper as a gang."""
