"""What a GangQueue says, read for the core."""
