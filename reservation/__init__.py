"""Assigns pods to the slots of a placement: slots, release order, replicas. Pure."""
