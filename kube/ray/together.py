"""Reads which Ray clusters start together: the name, the size and the rules of their group."""

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
_CHOICES = {
    names.TOGETHER_END: (names.TOGETHER_KEEP, names.TOGETHER_ALL),
    names.TOGETHER_TOPOLOGY: (names.TOGETHER_ONE, names.TOGETHER_EACH),
}
"""Keys beside the name with what each may say, the default first."""


class Together(NamedTuple):
    """A group of Ray clusters of one namespace that start together, as one member says it."""

    name: str
    size: int
    end: str = names.TOGETHER_KEEP
    """What becomes of the others once a member has ended."""
    topology: str = names.TOGETHER_ONE
    """Whether one domain holds the workers of all members that ask for one."""

    @property
    def ends_at_once(self) -> bool:
        """Whether all are stopped once one has ended."""
        return self.end == names.TOGETHER_ALL

    @property
    def parts_domains(self) -> bool:
        """Whether each member gets a domain of its own."""
        return self.topology == names.TOGETHER_EACH


class Fault(NamedTuple):
    """A value that cannot be used, and what is allowed in its place."""

    key: str
    value: str
    allowed: str


def together_asked(annotations: Labels) -> Together | None:
    """Return the group that annotations name; None where they name none that can be."""
    if names.TOGETHER not in annotations or any(together_faults(annotations)):
        return None
    rules = (annotations.get(key, allowed[0]) for key, allowed in _CHOICES.items())
    return Together(annotations[names.TOGETHER], int(annotations[names.TOGETHER_SIZE]), *rules)


def together_faults(annotations: Labels) -> Iterator[Fault]:
    """Yield what is wrong in the annotations of a group."""
    name, size = annotations.get(names.TOGETHER), annotations.get(names.TOGETHER_SIZE)
    if name is None:
        for key in filter(annotations.__contains__, (names.TOGETHER_SIZE, *_CHOICES)):
            said = f"beside {names.TOGETHER} only, which names the group"
            yield Fault(key, annotations[key], said)
        return
    if not _NAME.fullmatch(name):
        yield Fault(names.TOGETHER, name, _NAME_ALLOWED)
    if not (_SIZE.fullmatch(size or "") and FEWEST <= int(size or "") <= MOST):
        yield Fault(names.TOGETHER_SIZE, size or "", _SIZE_ALLOWED)
    for key, choices in _CHOICES.items():
        if annotations.get(key, choices[0]) not in choices:
            yield Fault(key, annotations[key], " or ".join(f'"{each}"' for each in choices))
    created = annotations.get(names.CREATE_PODS)
    if created == names.CREATE_ALWAYS:
        allowed = (
            f'"{names.CREATE_WHEN_ADMITTED}" beside {names.TOGETHER}: pods that wait for other '
            "members would hold ResourceQuota"
        )
        yield Fault(names.CREATE_PODS, created, allowed)
