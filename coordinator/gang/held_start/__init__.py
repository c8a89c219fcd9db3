"""The held start of a gang: its source is suspended until its pods have their place."""
