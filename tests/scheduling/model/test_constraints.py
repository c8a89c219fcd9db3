"""Values that are long: as many names or alternatives as there are nodes."""

from scheduling.model.constraints import NodeTerm, NodeTerms


def test_as_many_alternatives_as_nodes_are_hashed_once() -> None:
    """Hashing them for each pod and claim anew took a minute a cycle on 5,000 nodes."""
    hashed = []

    class Term(NodeTerm):
        def __hash__(self) -> int:
            hashed.append(self)
            return 1

    terms = NodeTerms([Term(), Term()])
    assert hash(terms) == hash(terms) == hash(tuple(terms))
    assert len(hashed) == 2 + 2  # once each, and once each as a plain tuple
    assert terms == tuple(terms)
