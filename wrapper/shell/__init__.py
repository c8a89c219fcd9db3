"""All of the wrapper that talks to the API server, and the clock."""
