"""What writes to a cluster for people: nothing else of the command line does."""
