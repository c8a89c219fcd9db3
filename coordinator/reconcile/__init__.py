"""What one gang needs next, and how its status says so."""
