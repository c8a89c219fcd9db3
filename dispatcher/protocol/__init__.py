"""The writes of manager and members, in an order that never lets a gang run on two members."""
