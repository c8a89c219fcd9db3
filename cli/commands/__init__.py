"""The commands of `muster` that read the cluster, a module for each."""
