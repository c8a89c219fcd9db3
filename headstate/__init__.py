"""Head fault tolerance: heads keep their state in a Redis of Muster's, each with its own user."""
