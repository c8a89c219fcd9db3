"""Prints whether Ray clusters fit, for people."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from rich.console import Console
from rich.text import Text

from cli.report.fit import FitOfObject, FitReport, Fits, Most, PlacedPodSet
from cli.show.output import printable
from cli.show.words import counted

NODES_NAMED: Final = 4
"""Nodes of a pod set that are named; all of them with `-o wide`."""

_SAID: Final = {
    Fits.YES: ("fits now", "bold green"),
    Fits.NO: ("does not fit now", "bold red"),
    Fits.UNKNOWN: ("not known whether it fits", "bold yellow"),
}


def table(report: FitReport, *, wide: bool) -> Callable[[Console], None]:
    """Return what prints the answers."""

    def show(console: Console) -> None:
        for each in report.objects:
            for line in _lines(each, wide=wide):
                console.print(line, soft_wrap=True)

    return show


def _lines(found: FitOfObject, *, wide: bool) -> Iterator[Text]:
    said, style = _SAID[found.fits]
    name = printable(f"{found.kind} {found.namespace}/{found.name}: ")
    yield Text.assemble(name, (said, style), printable(_place(found)))
    if found.fits is not Fits.YES or found.reason != "Admitted" or ";" in found.message:
        why = ": ".join(each for each in (found.reason, found.message) if each)
        yield Text(f"  {printable(why)}")
    width = max((len(each.pod_set) for each in found.placement), default=0)
    for pod_set in found.placement:
        yield Text(f"  {printable(_placed(pod_set, width, wide=wide))}")
    for each in found.largest_that_fit:
        yield Text(f"  {printable(_most(each))}")
    for note in found.notes:
        yield Text(f"  note: {printable(note)}")


def _place(found: FitOfObject) -> str:
    queue = f"queue {found.queue}" if found.queue else ""
    position = f"position {found.position}" if found.position else ""
    said = ", ".join(each for each in (queue, position) if each)
    return f" ({said})" if said else ""


def _placed(found: PlacedPodSet, width: int, *, wide: bool) -> str:
    pods, nodes = counted(found.pods, "pod"), counted(len(found.nodes), "node")
    return f"{found.pod_set:{width}}  {pods} on {nodes}: {_nodes(found.nodes, wide=wide)}"


def _nodes(nodes: Mapping[str, int], *, wide: bool) -> str:
    named = list(nodes.items())[: None if wide else NODES_NAMED]
    said = [name if count == 1 else f"{name} ({count})" for name, count in named]
    more = len(nodes) - len(named)
    return ", ".join(said) + (f" and {more} more" if more else "")


def _most(found: Most) -> str:
    if not found.searched:
        return f"{found.group}: not searched, for there are too many groups"
    if found.fit is None:
        return f"{found.group}: even with none of its {found.asked} replicas it would not fit"
    of = "replica" if found.asked == 1 else "replicas"
    return f"{found.group}: {found.fit} of {found.asked} {of} would fit, the rest as asked"
