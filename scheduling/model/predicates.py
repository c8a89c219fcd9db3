"""The predicates that can refuse a node, named after kube-scheduler's plugins."""

from enum import StrEnum


class Predicate(StrEnum):
    """What can refuse a node, in the order in which it is asked."""

    TOPOLOGY = "Topology"
    QUEUE = "Queue"
    AVOIDED = "Avoided"
    REMOVAL = "Removal"
    CORDON = "NodeUnschedulable"
    TAINT = "TaintToleration"
    ADDED_AFFINITY = "AddedAffinity"
    NODE_SELECTOR = "NodeSelector"
    NODE_AFFINITY = "NodeAffinity"
    SPREAD = "PodTopologySpread"
    VOLUME_RESTRICTIONS = "VolumeRestrictions"
    VOLUME_LIMITS = "NodeVolumeLimits"
    VOLUME_BINDING = "VolumeBinding"
    VOLUME_ZONE = "VolumeZone"
    INTER_POD_AFFINITY = "InterPodAffinity"
    DEVICES = "DynamicResources"
    FEATURES = "NodeDeclaredFeatures"
    RESOURCES = "NodeResourcesFit"


VOLUME_PREDICATES = (
    Predicate.VOLUME_RESTRICTIONS,
    Predicate.VOLUME_LIMITS,
    Predicate.VOLUME_BINDING,
    Predicate.VOLUME_ZONE,
)
"""The plugins that restrict nodes by volumes."""
