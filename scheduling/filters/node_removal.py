"""Rules out nodes that are about to be removed, whatever the pods of a gang tolerate.

kube-scheduler lets a pod that tolerates everything onto a node that is being drained. Its gang
would start there and be broken minutes later.
"""

import numpy as np

from scheduling.model.amounts import Mask
from scheduling.model.node import Removal
from scheduling.state.node_snapshot import NodeAttributes


def staying(traits: NodeAttributes) -> Mask | None:
    """Return the nodes that are not taken away for certain; None where that is all of them."""
    return traits.remembered("staying", lambda: _below(traits, Removal.CERTAIN))


def safest(traits: NodeAttributes) -> Mask | None:
    """Return the nodes that nothing says of that they may go; None where that is all of them."""
    return traits.remembered("safest", lambda: _below(traits, Removal.POSSIBLE))


def _below(traits: NodeAttributes, removal: Removal) -> Mask | None:
    mask: Mask = np.array([node.removal < removal for node in traits.nodes], dtype=np.bool_)
    return None if mask.all() else mask
