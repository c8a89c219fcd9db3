"""VolumeZone: which nodes match the labels of zone and region on a bound volume."""

from scheduling.model.constraints import NodeTerm, Requirement

ZONE_LABELS = (
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
)
"""What plugin VolumeZone reads; the first two are the old names of the others."""

_NEW_NAME = dict(zip(ZONE_LABELS[:2], ZONE_LABELS[2:], strict=True))
_UNZONED = NodeTerm(tuple(Requirement(key, "DoesNotExist", ()) for key in ZONE_LABELS))


def in_zone(key: str, values: tuple[str, ...]) -> tuple[NodeTerm, ...]:
    """Write down what plugin VolumeZone asks of a node for one label of a volume.

    A node without any zone passes; one that has not the old label may have the new one instead.
    """
    terms = [_UNZONED, NodeTerm((Requirement(key, "In", values),))]
    if key in _NEW_NAME:
        absent = Requirement(key, "DoesNotExist", ())
        terms.append(NodeTerm((absent, Requirement(_NEW_NAME[key], "In", values))))
    return tuple(terms)
