"""Reads which Ray clusters start together: the name, the size and the end of their group."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from kube.objects import names
from kube.objects.base import Labels

FEWEST, MOST = 2, 16
"""Members of a group: one verdict is found over the pods of all of them."""

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SIZE = re.compile(r"[0-9]{1,3}")
_NAME_ALLOWED = "a DNS label: 1 to 63 lower-case letters, digits and -, none of them - at the ends"
_SIZE_ALLOWED = f"a whole number from {FEWEST} to {MOST}"
_ENDS = (names.TOGETHER_KEEP, names.TOGETHER_ALL)


class Together(NamedTuple):
    """A group of Ray clusters of one namespace that start together, as one member says it."""

    name: str
    size: int
    end: str = names.TOGETHER_KEEP
    """What becomes of the others once a member has ended."""

    @property
    def ends_at_once(self) -> bool:
        """Whether all are stopped once one has ended."""
        return self.end == names.TOGETHER_ALL


class Fault(NamedTuple):
    """A value that cannot be used, and what is allowed in its place."""

    key: str
    value: str
    allowed: str


def together_asked(annotations: Labels) -> Together | None:
    """Return the group that annotations name; None where they name none that can be."""
    if names.TOGETHER not in annotations or any(together_faults(annotations)):
        return None
    end = annotations.get(names.TOGETHER_END, names.TOGETHER_KEEP)
    return Together(annotations[names.TOGETHER], int(annotations[names.TOGETHER_SIZE]), end)


def together_faults(annotations: Labels) -> Iterator[Fault]:
    """Yield what is wrong in the annotations of a group."""
    name, size = annotations.get(names.TOGETHER), annotations.get(names.TOGETHER_SIZE)
    end = annotations.get(names.TOGETHER_END)
    if name is None:
        for key, value in ((names.TOGETHER_SIZE, size), (names.TOGETHER_END, end)):
            if value is not None:
                yield Fault(key, value, f"beside {names.TOGETHER} only, which names the group")
        return
    if not _NAME.fullmatch(name):
        yield Fault(names.TOGETHER, name, _NAME_ALLOWED)
    if not (_SIZE.fullmatch(size or "") and FEWEST <= int(size or "") <= MOST):
        yield Fault(names.TOGETHER_SIZE, size or "", _SIZE_ALLOWED)
    if end not in (None, *_ENDS):
        yield Fault(names.TOGETHER_END, end, " or ".join(f'"{each}"' for each in _ENDS))
    created = annotations.get(names.CREATE_PODS)
    if created == names.CREATE_ALWAYS:
        allowed = (
            f'"{names.CREATE_WHEN_ADMITTED}" beside {names.TOGETHER}: pods that wait for other '
            "members would hold ResourceQuota"
        )
        yield Fault(names.CREATE_PODS, created, allowed)
