"""The command `muster`: what people ask of Muster, and what it prints for them."""
