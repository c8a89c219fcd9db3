"""Records what the state machine is told and what it answers, plays it again, and tells of it."""
