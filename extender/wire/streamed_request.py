"""Reads a question with whole Node objects in steps, so that other calls are answered meanwhile.

5,000 nodes are 40 MB, and to read them in one piece keeps the event loop for a tenth of a second.
So they are read node by node. Go writes the name of a node first, and a quote inside of a string is
escaped: where the SEAM stands, one node ends and the next begins. That it does is not taken for
granted. The nodes between the first seam and the last are cut out, and each has to be one JSON
value; with the MARK in their place the rest has to be a question with three nodes, the second of
which is the mark. Then the body was a question with just these nodes. Any other body is read in one
piece.
"""

from collections.abc import Generator, Iterable
from itertools import pairwise

from extender.wire.node_lists import NodeList
from extender.wire.protocol import BadQuestion, Body, Piece, Question, name_of, read_question

SEAM = b'},{"metadata":{"name":"'

MARK = b'{"metadata":{"name":"-"}}'
"""A node that no cluster has."""

Reading = Generator[None, None, Question]
"""Yields after each node, so that the event loop can be given back."""


def reading(body: Body, known: Iterable[NodeList] = ()) -> Reading:
    """Read what comes to /filter and /prioritize, as `read_question` does in one piece."""
    commas = yield from _seams(body)
    try:
        frame = _framed(body, commas)
        if frame is not None:
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


def _framed(body: Body, commas: list[int]) -> Question | None:
    """Read the rest with the mark in place of the nodes; None where it is not one of its nodes."""
    if not commas:
        return None
    before, after = body[: commas[0]], body[commas[-1] :]
    if MARK in before or MARK in after:
        return None
    frame = read_question(before + b"," + MARK + after)
    nodes = frame.nodes
    return frame if nodes and len(nodes) == 3 and bytes(nodes[1]) == MARK else None


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
    listed = NodeList([*names, frame.names[2]])
    return Question(frame.pod, listed, [*nodes, frame.nodes[2]])
