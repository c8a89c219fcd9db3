"""What of one gang is to be evicted, and how it is stopped whole."""
