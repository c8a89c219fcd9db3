"""Measures Muster, as ratios against floors of the same run. Nothing fails by time."""
