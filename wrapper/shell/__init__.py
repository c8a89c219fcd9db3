"""The parts of the wrapper that use the API server and the clock."""
