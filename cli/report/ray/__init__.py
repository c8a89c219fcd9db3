"""Shows jobs, and says which logs there are."""
