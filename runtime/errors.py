"""The exception that ends a program with a message and no traceback."""


class CannotRunError(Exception):
    """A program cannot run, or go on, for a reason that its operator can read."""
