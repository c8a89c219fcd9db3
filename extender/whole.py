"""How is a question read in which the nodes come whole, without keeping others waiting?

5,000 nodes are 40 MB, and to read them in one piece keeps the event loop for a tenth of a second.
So they are read node by node. Go writes the name of a node first, and a quote inside of a string is
escaped: where the SEAM stands, one node ends and the next begins. That it does is not taken for
granted. The nodes between the first seam and the last are cut out, and each has to be one JSON
value; what is left has to be a question with two nodes, the first of which ends at the seam. Then
the body was a question with just these nodes. Any other body is read in one piece.
"""

from collections.abc import Generator, Iterable
from itertools import pairwise

from extender.lists import NodeList
from extender.wire import BadQuestion, Body, Piece, Question, name_of, read_question

SEAM = b'},{"metadata":{"name":"'

Reading = Generator[None, None, Question]
"""Pauses after each node, for whoever wants to do something else."""


def reading(body: Body, known: Iterable[NodeList] = ()) -> Reading:
    """Read what comes to /filter and /prioritize, as `read_question` does in one piece."""
    commas = yield from _seams(body)
    try:
        frame = read_question(body[: commas[0]] + body[commas[-1] :]) if commas else None
        if frame is not None and _fits(frame, body, commas[0]):
            return (yield from _filled(frame, body, commas))
    except BadQuestion:
        pass  # of this body, read in one piece, the text may be another one
    return read_question(body, known)


def _seams(body: Body) -> Generator[None, None, list[int]]:
    """Find where the commas between nodes are."""
    commas = []
    at = body.find(SEAM)
    while at >= 0:
        commas.append(at + 1)
        yield
        at = body.find(SEAM, at + 1)
    return commas


def _fits(frame: Question, body: Body, comma: int) -> bool:
    """Whether the seams lie between the two nodes of the frame."""
    nodes = frame.nodes
    return nodes is not None and len(nodes) == 2 and body.endswith(bytes(nodes[0]), 0, comma)


def _filled(frame: Question, body: Body, commas: list[int]) -> Reading:
    """Put the nodes that were cut out back between the first and the last one."""
    assert frame.nodes is not None
    view = memoryview(body)
    nodes: list[Piece] = [frame.nodes[0]]
    names = [frame.names[0]]
    for before, after in pairwise(commas):
        nodes.append(view[before + 1 : after])
        names.append(name_of(nodes[-1]))
        yield
    listed = NodeList([*names, frame.names[1]])
    return Question(frame.pod, listed, [*nodes, frame.nodes[1]])
