"""Prints the findings of the doctor, for people."""

from collections.abc import Callable
from typing import Final

from rich.console import Console
from rich.text import Text

from cli.report.doctor.checks import DoctorReport
from cli.report.doctor.findings import State
from cli.show.output import printable

_STYLES: Final = {
    State.OK: "green",
    State.WARN: "yellow",
    State.FAIL: "bold red",
    State.UNKNOWN: "dim",
}


def table(report: DoctorReport) -> Callable[[Console], None]:
    """Return what prints the findings, each with its remedy below it."""
    width = max(len(each.check) for each in report.findings)
    indent = " " * (9 + width + 2)

    def show(console: Console) -> None:
        for each in report.findings:
            check, said = printable(each.check), printable(each.message)
            text = Text.assemble(
                (f"{each.state:<9}", _STYLES[each.state]), f"{check:<{width}}  {said}"
            )
            console.print(text, soft_wrap=True)
            if each.remedy:
                console.print(Text(f"{indent}{printable(each.remedy)}", "dim"), soft_wrap=True)

    return show
