"""Defines the options that commands share, and runs a command against the cluster.

A command's body is a coroutine of a reader that returns what to print and the exit code; all that
can go wrong on the way ends in one line on standard error.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import nullcontext
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click
from click.shell_completion import CompletionItem

from cli.endings import INTERRUPTED, TABLE, Ending
from cli.read.target import Target

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from cli.read.reader import Reader
    from cli.write.writer import Writer
    from kube.api.client import Client

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
U = TypeVar("U")

OUTPUTS = ("table", "wide", "json", "yaml")


def epilog(*examples: str) -> str:
    """Write the end of a command's help: exit codes and examples."""
    lines = "\n".join(f"  {each}" for each in examples)
    return f"\b\nExit code:\n{TABLE}\n\b\nExamples:\n{lines}\n"


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name a cluster; the command gets them as its argument `target`."""

    @wraps(command)
    def with_target(
        *arguments: Any,
        kubeconfig: str | None,
        context: str | None,
        request_timeout: float,
        **others: Any,
    ) -> Any:
        return command(*arguments, target=Target(kubeconfig, context, request_timeout), **others)

    found: Callable[..., Any] = with_target
    for option in (_TIMEOUT, _CONTEXT, _KUBECONFIG):
        found = option(found)
    return found


def add_options(command: F, options: Sequence[Callable[[F], F]]) -> F:
    """Add options to a command; its help lists them in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def complete_files(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Have the shell complete names of files."""
    return [CompletionItem(incomplete, type="file")]


_KUBECONFIG = click.option(
    "--kubeconfig",
    shell_complete=complete_files,
    help="Default: KUBECONFIG, then the pod's account, then ~/.kube/config.",
)
_CONTEXT = click.option("--context", help="Default: the kubeconfig's current context.")
_TIMEOUT = click.option(
    "--request-timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="How long one request may take.",
)


def namespace_option(command: F) -> F:
    """Add `-n`."""
    return click.option("-n", "--namespace", default="", help="The namespace of the gangs.")(
        command
    )


def expected_option(command: F) -> F:
    """Add `--expected`."""
    return click.option(
        "--expected",
        is_flag=True,
        help="When gangs are expected to start: reads the whole cluster, some seconds of CPU.",
    )(command)


def scope_options(command: F) -> F:
    """Add `-n` and `-A`; without either all namespaces are shown that the caller may list."""
    everywhere = click.option(
        "-A", "--all-namespaces", "everywhere", is_flag=True, help="Gangs of all namespaces."
    )
    return namespace_option(everywhere(command))


def output_option(command: F) -> F:
    """Add `-o`, and `--json` for the form that programs read."""
    as_json = click.option("--json", "output", flag_value="json", help="The same as -o json.")
    return _output(as_json(command))


def _output(command: F) -> F:
    return click.option(
        "-o",
        "--output",
        type=click.Choice(OUTPUTS),
        default="table",
        show_default=True,
        help="How the answer is printed.",
    )(command)


def run(
    context: click.Context,
    target: Target,
    work: Callable[[Reader], Coroutine[Any, Any, T]],
) -> T:
    """Run a coroutine with a reader of the target; ends the program where it cannot be read.

    `obj` of click's context, where it is set, opens the reader in place of the real one.
    """
    from cli.read.reader import open_reader  # noqa: PLC0415 - a start must not pay for it

    return _run(context.obj or open_reader, target, work)


def run_writing(target: Target, work: Callable[[Writer], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine with a writer to the target; ends the program where it cannot be read."""
    from cli.write.writer import open_writer  # noqa: PLC0415

    return _run(open_writer, target, work)


def run_client(target: Target, work: Callable[[Client, str], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine with the client itself and its namespace, as the others."""
    from cli.read.reader import open_client  # noqa: PLC0415

    return _run(open_client, target, lambda found: work(*found))


def run_alone(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine that has no cluster of its own, as the others."""
    return _run(lambda _: nullcontext(), Target(), lambda _: work())


def _run(
    opened: Callable[[Target], AbstractAsyncContextManager[U]],
    target: Target,
    work: Callable[[U], Coroutine[Any, Any, T]],
) -> T:
    import asyncio  # noqa: PLC0415

    async def doing() -> T:
        async with opened(target) as cluster:
            return await work(cluster)

    # The lists of a large cluster: the collector would walk all of them again and again.
    gc.disable()
    try:
        return asyncio.run(doing())
    except Ending as ending:
        end(ending)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    finally:
        gc.enable()


def end(ending: Ending) -> NoReturn:
    """End the program with one line on standard error."""
    click.echo(f"Error: {' '.join(str(ending).split())}", err=True)
    sys.exit(ending.code)
