"""Names the label that a pod, or the queue of its gang, requires and that no node has.

A node selector with a typing error matches no node at all. Then the missing label and the existing
values help more than a count of nodes.
"""

from collections.abc import Iterable, Sequence

from scheduling.filters.feasibility import masks
from scheduling.model.constraints import NODE_NAME, NodeTerm, Requirement
from scheduling.model.pod import PodShape
from scheduling.model.predicates import Predicate
from scheduling.state.node_snapshot import NodeAttributes

NAMED = 3
"""How many labels, or values of one, are named."""

SHOWN = 63
"""How much of a key or value is shown; a value has no more."""


def unmatched(shape: PodShape, traits: NodeAttributes) -> str:
    """Name what of the node selectors and the required node affinity no node matches, if anything.

    It is about all nodes, whatever else rules them out.
    """
    asked = shape.node_selector, shape.restrictions.queue, shape.node_affinity
    if not traits.names or asked == ((), (), None):
        return ""
    return traits.remembered(("unmatched", *asked), lambda: _unmatched(*asked, traits))


def in_words(labels: Sequence[tuple[str, str]]) -> str:
    """Write labels that nodes must have."""
    return _listed([f"{_shown(key)}={_shown(value)}" for key, value in labels])


def _unmatched(
    selector: tuple[tuple[str, str], ...],
    of_queue: tuple[tuple[str, str], ...],
    terms: tuple[NodeTerm, ...] | None,
    traits: NodeAttributes,
) -> str:
    selectors = (NodeTerm(_as_requirements(each)) for each in (selector, of_queue) if each)
    said = [_of_term(each, traits) for each in selectors]
    if terms and not any(_matches(term, traits) for term in terms):
        said += [_of_term(term, traits) for term in terms[:NAMED]]
    return "; ".join(dict.fromkeys(filter(None, said)))


def _as_requirements(selector: Iterable[tuple[str, str]]) -> tuple[Requirement, ...]:
    return tuple(Requirement(key, "In", (value,)) for key, value in selector)


def _matches(term: NodeTerm, traits: NodeAttributes) -> bool:
    alone = PodShape(own_requests=(), node_affinity=(term,))
    return bool(masks(alone, traits)[Predicate.NODE_AFFINITY].any())


def _of_term(term: NodeTerm, traits: NodeAttributes) -> str:
    """Name those requirements that no node meets, else all of them if no node meets all."""
    if _matches(term, traits):
        return ""
    parts = [NodeTerm((each,)) for each in term.labels]
    parts += [NodeTerm(fields=(each,)) for each in term.fields]
    lacking = [part for part in parts if not _matches(part, traits)]
    if lacking:
        return f"no node has {_listed([_named(part, traits) for part in lacking])}"
    if not parts:
        return "a term of the node affinity is empty, which matches no node"
    return f"no node has all of {_listed([_spoken(part) for part in parts])}"


def _named(part: NodeTerm, traits: NodeAttributes) -> str:
    """Say what is asked for, and which values of the label exist."""
    if not part.labels or part.labels[0].key == NODE_NAME:
        return _spoken(part)
    there = sorted(value for value in traits.label(part.labels[0].key).values if value is not None)
    has = f"existing values: {_listed(there)}" if there else "no node has this label"
    return f"{_spoken(part)} ({has})"


def _spoken(part: NodeTerm) -> str:
    [asked] = part.labels or part.fields
    key, values = _shown(asked.key), _listed(asked.values)
    match asked.operator:
        case "In" if len(asked.values) == 1:
            return f"{key}={values}"
        case "In" | "NotIn":
            return f"{key} {'in' if asked.operator == 'In' else 'not in'} ({values})"
        case "Exists" | "DoesNotExist":
            return f"a label {key}" if asked.operator == "Exists" else f"{key} unset"
        case "Gt" | "Lt":
            return f"{key} {'above' if asked.operator == 'Gt' else 'below'} {values}"
        case other:
            return f"{key} {_shown(other)} ({values})"


def _listed(texts: Sequence[str]) -> str:
    more = len(texts) - NAMED
    named = ", ".join(map(_cut, texts[:NAMED]))
    return named + (f" and {more} more" if more > 0 else "")


def _cut(text: str) -> str:
    """Cut a whole requirement with its values; what it is made of was cut before."""
    return text if len(text) <= 4 * SHOWN else f"{text[: 4 * SHOWN - 1]}…"


def _shown(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
