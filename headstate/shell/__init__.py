"""The part of the program that talks to Redis, Sentinel and the API server, and reads the clock."""
