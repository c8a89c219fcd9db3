"""The pods of one gang: where they stand, which slots are kept, what they go through."""
