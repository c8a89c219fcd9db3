"""The steps that write the state of a gang to its Gang object, and report it by Events."""
