"""What a replica remembers of its answers, until watches show what became of them."""
