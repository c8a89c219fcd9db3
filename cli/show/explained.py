"""Prints reasons with cause and remedy."""

from collections.abc import Callable

from rich.console import Console
from rich.text import Text

from cli.report.explained import Explained


def table(found: Explained) -> Callable[[Console], None]:
    """Return what prints the reasons, one paragraph each."""

    def printed(console: Console) -> None:
        for each in found.reasons:
            console.print(Text(each.reason, style="bold"))
            for label, said in (("means", each.means), ("to do", each.remedy)):
                console.print(Text(f"  {label}: {said}"), soft_wrap=True)

    return printed
