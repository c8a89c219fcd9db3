"""Orders the running gangs of queues that are drained, as preemption would take them."""

from collections.abc import Container, Iterable

from scheduling.model.preemption import GangPart
from scheduling.preemption.candidates import Candidate, order
from scheduling.preemption.coverage import Coverage, Guarantees
from scheduling.queueing.quota_tree import QuotaTree


def drain_order(
    parts: Iterable[GangPart], tree: QuotaTree, queues: Container[str]
) -> list[GangPart]:
    """Return the minimums of the gangs of some queues that can be stopped, the first to go first.

    A gang loses all its surplus with its minimum. `parts` are those of all running gangs.
    """
    guarantees = Guarantees(tree)
    stays = [each for each in parts if each.queue in tree.index and not each.is_ending]
    uses = [(part, guarantees.use(part)) for part in stays]
    coverage = Coverage(guarantees, (use for _, use in uses))
    mine = [(p, use) for p, use in uses if p.queue in queues and p.is_minimum]
    found = [Candidate((p,), coverage.depth(use)) for p, use in mine if not p.kept_because]
    return [each.first for each in sorted(found, key=order)]
