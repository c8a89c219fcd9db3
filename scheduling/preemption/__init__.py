"""Preemption: selects parts of running gangs to stop so that a waiting gang can be admitted."""
