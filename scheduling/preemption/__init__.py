"""Preemption: what of running gangs ends so that a waiting one can be admitted."""
