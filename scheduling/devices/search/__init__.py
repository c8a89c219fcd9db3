"""What a search of the allocator keeps: constraints that it met, counters that are left."""
