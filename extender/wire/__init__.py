"""Decodes kube-scheduler's questions, and encodes the answers."""
