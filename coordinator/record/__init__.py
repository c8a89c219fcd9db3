"""What the coordinator reports of a gang: its Gang object, Events, decisions in the log."""
