"""The state machine of the coordinator in parts: what is known, taken in, reserved and decided."""
