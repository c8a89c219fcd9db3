"""The evictions of one gang, and the method by which a whole gang is stopped."""
