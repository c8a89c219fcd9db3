"""Computes the scores for the last answer of `filter` before `prioritize` asks for them.

kube-scheduler asks `prioritize` about the nodes that `filter` has left, but first its own plugins
score them. So the scores are computed as soon as the answer of `filter` has been sent, from what is
known then. A score is a preference: what becomes known in between changes it for the next pod.
Where `prioritize` is not asked, because one node was left or because the scheduler's configuration
does not name it, no second answer is computed in vain.

One answer is remembered, until it is asked for or `filter` answers again. Its node list is
recognised by identity (`extender/wire/node_lists.py` returns the same object for the same text).
"""

from collections.abc import Callable

from extender.snapshot import WatchedPod
from extender.wire.node_lists import NodeList

Score = Callable[[WatchedPod, NodeList], bytes]


class ScorePrefetch:
    """The one answer that is computed in advance; `score` computes it."""

    def __init__(self, score: Score) -> None:
        self._score = score
        self._wanted = True
        self._next: tuple[WatchedPod, NodeList] | None = None
        self._ready: tuple[str, NodeList, bytes] | None = None

    def expect(self, asked: WatchedPod, nodes: NodeList) -> None:
        """Note that filter has left these nodes to the pod."""
        self._ready = None
        self._next = (asked, nodes) if self._wanted and len(nodes) > 1 else None

    def work(self) -> None:
        """Compute the expected answer, if there is one."""
        if self._next is not None:
            asked, nodes = self._next
            self._wanted, self._next = False, None
            self._ready = asked.pod.uid, nodes, self._score(asked, nodes)

    def answer(self, uid: str, nodes: NodeList) -> bytes | None:
        """Return the scores that are asked for; None where they are not ready."""
        self._wanted, self._next = True, None
        match self._ready:
            case (known, listed, answer) if known == uid and listed is nodes:
                return answer
        return None
