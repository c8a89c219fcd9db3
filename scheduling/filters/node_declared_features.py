"""NodeDeclaredFeatures: which nodes declare the features that a pod needs."""

import numpy as np

from scheduling.model.amounts import Mask
from scheduling.state.node_snapshot import NodeAttributes


def able(features: tuple[str, ...], traits: NodeAttributes) -> Mask:
    """Return the nodes that declare all of the features; most pods need none."""
    if not features:
        return np.ones(len(traits.nodes), dtype=np.bool_)
    return np.array([node.features.issuperset(features) for node in traits.nodes], dtype=np.bool_)
