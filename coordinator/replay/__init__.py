"""Records the events and actions of the state machine, and replays a recording."""
