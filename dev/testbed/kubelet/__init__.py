"""Plays the kubelet where kwok does not do: containers that run, and their logs."""
