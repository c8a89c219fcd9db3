"""The steps that end a gang, or surplus of it."""
