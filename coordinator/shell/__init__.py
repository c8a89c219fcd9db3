"""The shell around the state machine: watches, loop, writes. It decides nothing."""
