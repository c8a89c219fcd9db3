"""Asks for confirmation before an action that cannot be undone."""

import sys

import click

from cli.endings import Declined, Unusable


def is_terminal() -> bool:
    """Say whether there is a person to ask."""
    return sys.stdin.isatty()


def confirm(question: str) -> None:
    """Ask; raises Declined where the answer is no, and Unusable where nothing can answer."""
    if not is_terminal():
        raise Unusable(
            "there is no terminal to ask on: add --yes, or --dry-run to see what it does"
        )
    if not click.confirm(question, err=True):
        raise Declined("nothing was changed")
