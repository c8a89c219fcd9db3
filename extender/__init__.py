"""Which nodes may a pod have while gangs hold reservations, and which of them should it take?"""
