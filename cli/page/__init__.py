"""Serves the page in the browser, from repeated readings of the cluster."""
