"""The pods of one gang: their standing, their slots, their repairs and their expected changes."""
