"""The search for gangs whose own pods constrain each other."""
