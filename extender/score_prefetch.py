"""Works out the scores that kube-scheduler will ask for next.

kube-scheduler asks `prioritize` about the nodes that `filter` has left it, but first its own
plugins score them. So as soon as an answer of filter has been sent, the scores for it are worked
out, from what is known then: a score is a preference, and what came to be known in between would
change it for the next pod. Where prioritize is not asked, because one node was left or because no
scheduler is told to, no second answer is worked out for nothing.
"""

from collections.abc import Callable

from extender.snapshot import Seen
from extender.wire.node_lists import NodeList

Score = Callable[[Seen, NodeList], bytes]


class Ahead:
    """The one answer that is worked out ahead; `score` makes it."""

    def __init__(self, score: Score) -> None:
        self._score = score
        self._wanted = True
        self._next: tuple[Seen, NodeList] | None = None
        self._ready: tuple[str, NodeList, bytes] | None = None

    def expect(self, asked: Seen, nodes: NodeList) -> None:
        """Filter has left these nodes to the pod."""
        self._ready = None
        self._next = (asked, nodes) if self._wanted and len(nodes) > 1 else None

    def work(self) -> None:
        """Work out what is expected, where something is."""
        if self._next is not None:
            asked, nodes = self._next
            self._wanted, self._next = False, None
            self._ready = asked.pod.uid, nodes, self._score(asked, nodes)

    def answer(self, uid: str, nodes: NodeList) -> bytes | None:
        """The scores that are asked for, where they are ready; None where they are not."""
        self._wanted, self._next = True, None
        match self._ready:
            case (known, listed, answer) if known == uid and listed is nodes:
                return answer
        return None
