"""The commands of `muster` that manage Ray clusters, jobs and queues, a module for each."""
