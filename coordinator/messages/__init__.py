"""What the state machine is told and what it asks for: events, actions, the time."""
