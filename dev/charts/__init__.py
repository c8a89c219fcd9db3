"""Writes the Helm chart from what kustomize builds, so that the two cannot say different things."""
