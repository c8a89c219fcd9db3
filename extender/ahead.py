"""Which scores will be asked for next, and can they be ready by then?

kube-scheduler asks `prioritize` about the nodes that `filter` has left it, but first its own
plugins score them. So as soon as an answer of filter has been sent, the scores for it are worked
out, from what is known then: a score is a preference, and what came to be known in between would
change it for the next pod. Where prioritize is not asked, because one node was left or because no
scheduler is told to, no second answer is worked out for nothing.
"""

from collections.abc import Callable

from extender.lists import NodeList
from kube.objects import Pod

Score = Callable[[Pod, NodeList], bytes]


class Ahead:
    """The one answer that is worked out ahead; `score` makes it."""

    def __init__(self, score: Score) -> None:
        self._score = score
        self._wanted = True
        self._next: tuple[Pod, NodeList] | None = None
        self._ready: tuple[str, NodeList, bytes] | None = None

    def expect(self, pod: Pod, nodes: NodeList) -> None:
        """Filter has left these nodes to the pod."""
        self._ready = None
        self._next = (pod, nodes) if self._wanted and len(nodes.names) > 1 else None

    def work(self) -> None:
        """Work out what is expected, where something is."""
        if self._next is not None:
            pod, nodes = self._next
            self._wanted, self._next = False, None
            self._ready = pod.metadata.uid, nodes, self._score(pod, nodes)

    def answer(self, pod: Pod, nodes: NodeList) -> bytes:
        """The scores that are asked for, ready or not."""
        self._wanted, self._next = True, None
        match self._ready:
            case (uid, listed, answer) if uid == pod.metadata.uid and listed is nodes:
                return answer
        return self._score(pod, nodes)
