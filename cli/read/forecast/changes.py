"""Reads the options of `muster what-if`, and the fields of the page, as changes."""

from collections.abc import Iterable, Mapping, Sequence

from cli.fitting.asked import Asked, read_asked
from cli.forecast.changes import Added, Changes, Quota, read_quota
from cli.imports.outcome import Fault, Source
from scheduling.model.gang import GangKey


def read_changes(
    said: Mapping[str, Sequence[str]], sources: Sequence[Source], namespace: str
) -> Changes:
    """Return what options ask for; raises Fault with the option, the value and what is allowed.

    `sources` are the objects to submit.
    """
    return Changes(
        cordoned=_named("--cordon", said["cordon"]),
        drained=_named("--drain", said["drain"]),
        added=tuple(map(_added, said["add_nodes"])),
        quotas=tuple(map(_quota, said["quota"])),
        stopped=tuple(dict.fromkeys(_gang(each, namespace) for each in said["stop"])),
        asked=_asked(sources, namespace),
    )


def _named(option: str, names: Iterable[str]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(names))
    if "" in found:
        raise Fault(f'{option} "": allowed: the name of a node')
    return found


def _added(text: str) -> Added:
    count, equals, like = text.partition("=")
    if not (equals and like and count.isascii() and count.isdecimal() and int(count[:9])):
        raise Fault(f"--add-nodes {text}: allowed: N=NODE, such as 4=gpu-1")
    return Added(int(count), like)


def _quota(text: str) -> Quota:
    queue, colon, rest = text.partition(":")
    resource, equals, amount = rest.rpartition("=")
    if not (queue and colon and resource and equals and amount):
        raise Fault(
            f"--quota {text}: allowed: QUEUE:RESOURCE=AMOUNT, such as research:nvidia.com/gpu=32"
        )
    found = Quota(queue, resource, amount)
    read_quota(found)
    return found


def _gang(text: str, namespace: str) -> GangKey:
    place, slash, name = text.rpartition("/")
    if not name or "/" in place or (slash and not place):
        raise Fault(f"--stop {text}: allowed: GANG or NAMESPACE/GANG")
    return GangKey(place or namespace, name)


def _asked(sources: Sequence[Source], namespace: str) -> tuple[Asked, ...]:
    if not sources:
        return ()
    asked, remarks = read_asked(sources, namespace)
    if not asked:
        raise Fault(f"-f: {'; '.join(remarks)}")
    return tuple(asked)
