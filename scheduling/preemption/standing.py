"""Tracks the parts of the running gangs during one cycle, and which parts count as gone."""

from collections.abc import Collection
from functools import cached_property

from scheduling.model.gang import GangKey
from scheduling.model.preemption import GangPart
from scheduling.preemption.coverage import Guarantees, Use
from scheduling.preemption.freed import Freed
from scheduling.queueing.quota_tree import QuotaTree
from scheduling.state.node_snapshot import NodeSnapshot


class Standing:
    """The parts of the running gangs, by position, and which of them are as good as gone."""

    def __init__(self, parts: tuple[GangPart, ...], nodes: NodeSnapshot, tree: QuotaTree) -> None:
        self.parts, self._nodes, self._tree = parts, nodes, tree
        self._at = {id(each): at for at, each in enumerate(parts)}  # two may have one name
        self._ending = frozenset(at for at, each in enumerate(parts) if each.is_ending)
        self.gone = self._ending
        self._freed: Freed | None = None

    def freed(self, parts: Collection[int]) -> Freed:
        """Return what they give back, or what those do that are ending where that is enough."""
        if self._freed is None and self._ending.issuperset(parts):
            return self._freed_by_ending
        if self._freed is None:
            self._freed = Freed(dict(enumerate(self.parts)), self._nodes, self._tree)
        return self._freed

    @cached_property
    def _freed_by_ending(self) -> Freed:
        return Freed({at: self.parts[at] for at in self._ending}, self._nodes, self._tree)

    @cached_property
    def guarantees(self) -> Guarantees:
        """The quota that covers them."""
        return Guarantees(self._tree)

    @cached_property
    def uses(self) -> list[Use | None]:
        """What they use of it; None of a part whose queue does not work."""
        index = self._tree.index
        return [self.guarantees.use(p) if p.queue in index else None for p in self.parts]

    def position(self, part: GangPart) -> int:
        """Return where a part is among them."""
        return self._at[id(part)]

    def minimum(self, gang: GangKey) -> GangPart | None:
        """Return what a gang holds of its minimum."""
        mine = (each for each in self.parts if each.gang == gang and each.is_minimum)
        return next((each for each in mine if not each.is_ending), None)

    def named(self, at: Collection[int]) -> tuple[GangPart, ...]:
        """Return the parts at these positions."""
        return tuple(self.parts[each] for each in sorted(at))

    def left(self) -> list[tuple[GangPart, Use]]:
        """Return the parts that are not gone."""
        pairs = enumerate(zip(self.parts, self.uses, strict=True))
        return [(part, use) for at, (part, use) in pairs if use and at not in self.gone]
