"""Counts devices that no node has for itself: of shared ones the capacity, of far ones each."""
