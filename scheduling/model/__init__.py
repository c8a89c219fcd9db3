"""Values of the core; they import nothing but each other."""
