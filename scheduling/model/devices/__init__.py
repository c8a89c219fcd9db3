"""The objects of dynamic resource allocation: slices of devices, claims, classes, selectors."""
