"""The exhaustive search: every way to place a gang whose pods constrain each other."""
