"""The checks of `muster doctor`, a module for each subject."""
