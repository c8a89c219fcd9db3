"""The status of a gang, worked out from its view."""
