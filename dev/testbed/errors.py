"""Errors of the testbed that its user can act on."""


class TestbedError(Exception):
    """The testbed could not do what it was asked; the message says why and where to look."""

    __test__ = False  # pytest collects classes by the prefix of their name
