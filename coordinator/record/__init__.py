"""What is told of a gang: its Gang object, Events, decisions in the log."""
