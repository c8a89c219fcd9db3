"""Checks the environment variables of the certificate program, whose other settings are options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import click

from kube.objects.namespace import ALLOWED, is_namespace
from runtime.program import unknown_variables

PREFIX: Final = "MUSTER_CERTS_"
NAMESPACE: Final = f"{PREFIX}NAMESPACE"


class BadEnvironment(click.ClickException):
    """One or more variables cannot be used; the text has a line for each of them."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        """Write the lines as the other programs do."""
        click.echo(self.message, file=file, err=True)


class Namespace(click.ParamType[str]):
    """An option that is the name of a namespace."""

    name = "namespace"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        """Return it as it is, or fail."""
        text = str(value)
        return text if is_namespace(text) else self.fail(_wrong(text), param, ctx)


def check_environment(environment: Mapping[str, str]) -> None:
    """Refuse what is spelled wrong, in the name of a variable or in its value."""
    if faults := list(_faults(environment)):
        raise BadEnvironment("\n".join(faults))


def _faults(environment: Mapping[str, str]) -> Iterator[str]:
    namespace = environment.get(NAMESPACE)
    if namespace is not None and not is_namespace(namespace):
        yield f"{NAMESPACE}: {_wrong(namespace)}"
    yield from unknown_variables([NAMESPACE], PREFIX, environment)


def _wrong(namespace: str) -> str:
    return f"{namespace!r}: not valid; allowed: {ALLOWED}"
