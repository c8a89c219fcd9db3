"""What dynamic resource allocation is about: slices of devices, claims, classes, selectors."""
