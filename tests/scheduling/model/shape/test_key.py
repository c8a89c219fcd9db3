"""Keys of pod shapes stay the same over releases, and differ where shapes do."""

from dataclasses import fields, replace

from hypothesis import given

from scheduling.model.constraints import (
    NodeTerm,
    PodTerm,
    Requirement,
    SpreadConstraint,
    Toleration,
)
from scheduling.model.pod import PodShape
from scheduling.model.restrictions import NodeRestrictions
from tests.properties.strategies import shapes

IN_ZONE = Requirement("zone", "In", ("a", "b"))
OF_APP = PodTerm("host", (IN_ZONE,), ("team",), (IN_ZONE,))
PLAIN = PodShape((("cpu", 1000), ("pods", 1)))
FULL = PodShape(
    own_requests=(("cpu", 1000), ("pods", 1)),
    node_selector=(("pool", "gpu"),),
    node_affinity=(NodeTerm((IN_ZONE,), (Requirement("metadata.name", "In", ("n1",)),)),),
    tolerations=(Toleration("gpu", "Equal", "yes", "NoSchedule"),),
    added_affinity=(NodeTerm((IN_ZONE,), ()),),
    features=("Feature",),
    own_unsupported=("resourceClaims",),
    affinity=(OF_APP,),
    anti_affinity=(PodTerm("zone", (), ("team",)),),
    spread=(SpreadConstraint(OF_APP, 2, 3, honors_affinity=False, honors_taints=True),),
    volumes=("data",),
)


def test_keys_are_those_of_the_first_release() -> None:
    """Placements on running clusters hold them: a release that changes them says so."""
    assert (PLAIN.key, FULL.key) == ("c5d788c63fb5", "9d0143774d67")


def test_each_field_is_part_of_the_key() -> None:
    own = [
        each.name for each in fields(PodShape) if each.name not in ("restrictions", "own_requests")
    ]
    without = {replace(FULL, **{name: getattr(PLAIN, name)}).key for name in own}
    assert len({FULL.key, *without}) == 1 + len(own)


def test_what_others_add_is_no_part_of_the_key() -> None:
    assert replace(FULL, restrictions=NodeRestrictions(avoided=("n1",))).key == FULL.key


def test_no_node_affinity_is_another_than_an_empty_one() -> None:
    assert replace(PLAIN, node_affinity=()).key != PLAIN.key


@given(shapes(), shapes())
def test_keys_are_equal_where_shapes_are(one: PodShape, other: PodShape) -> None:
    assert (one.key == other.key) == (one == other)
