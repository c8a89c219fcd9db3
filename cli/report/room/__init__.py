"""Room: what nodes offer, who uses it, and who holds what a gang lacks."""
