"""The parts of the state machine: known facts, intake of events, reservations and cycles."""
