"""The inputs and outputs of the state machine: events, actions, the time."""
