"""The state of an allocator's search: constraints on chosen devices, and counters that are left."""
