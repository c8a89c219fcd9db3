"""Defragmentation: which running gangs, moved to other nodes, let a waiting one start."""
