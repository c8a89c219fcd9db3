"""Terms for nodes: puts alternatives together, and narrows them to some nodes."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from scheduling.model.constraints import NodeTerm, NodeTerms, Requirement


def merged(selectors: Iterable[tuple[Requirement, ...]]) -> NodeTerms:
    """Return ORed terms; those that ask for one value of a label, as most do, become one."""
    values: defaultdict[str, set[str]] = defaultdict(set)
    terms: set[NodeTerm] = set()
    for selector in selectors:
        if len(selector) == 1 and selector[0].operator == "In":
            values[selector[0].key].update(selector[0].values)
        else:
            terms.add(NodeTerm(selector))
    one = (Requirement(key, "In", tuple(sorted(each))) for key, each in values.items())
    return NodeTerms(sorted({*terms, *(NodeTerm((each,)) for each in one)}, key=repr))


def among(terms: tuple[NodeTerm, ...] | None, names: Requirement) -> Iterator[NodeTerm]:
    """Yield terms that hold on these nodes only; None holds on all of them."""
    for term in (NodeTerm(),) if terms is None else terms:
        if terms is None or term.labels:  # an empty term matches no node
            yield NodeTerm((*term.labels, names))
