"""Reads kube-scheduler's questions and writes the answers (extender v1).

The keys are the names of Go's fields, because those structs have no JSON tags; the pod inside is
ordinary Kubernetes JSON. Go itself would take keys in any case, so questions may come so; answers
are spelled exactly. Only what is used is decoded, and node names are sent back as they came.

A question that cannot be read raises BadQuestion with a text of its own: nothing of the input is
ever in it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec
import orjson

from extender.wire.node_lists import NodeList, read_names
from kube.objects.core import Pod
from scheduling.scoring.node_scores import POINTS

T = TypeVar("T")


class BadQuestion(ValueError):  # noqa: N818 - a question that is bad, not a fault of ours
    """The body is not what kube-scheduler sends."""


Body = bytes | bytearray
Piece = msgspec.Raw | memoryview
"""A part of a body that is one JSON value."""


@dataclass(frozen=True, slots=True)
class Question:
    """A pod and the nodes that are left for it; `nodes` are the same nodes whole, if they came."""

    pod: Pod
    listed: NodeList
    nodes: Sequence[Piece] | None

    @property
    def names(self) -> Sequence[str]:
        """The names of the nodes."""
        return self.listed.names


@dataclass(frozen=True, slots=True)
class Victims:
    """The pods whose eviction makes room on a node: uids, and how many budgets that breaks."""

    uids: tuple[str, ...]
    violations: int


@dataclass(frozen=True, slots=True)
class Preemption:
    """A pod that fits nowhere, and for some nodes the pods that could be evicted for it."""

    pod: Pod
    victims: Mapping[str, Victims]


# ---- what comes in


class _Meta(msgspec.Struct, gc=False):
    name: str = ""
    uid: str = ""


class _Object(msgspec.Struct, gc=False):
    metadata: _Meta


class _NodeList(msgspec.Struct, gc=False):
    items: list[msgspec.Raw] | None = None


_NULL = msgspec.Raw(b"null")


class _Args(msgspec.Struct, gc=False):
    pod: Pod = msgspec.field(name="Pod")
    nodes: _NodeList | None = msgspec.field(name="Nodes", default=None)
    names: msgspec.Raw = msgspec.field(name="NodeNames", default=_NULL)


class _MetaPod(msgspec.Struct, gc=False):
    uid: str = msgspec.field(name="UID", default="")


class _MetaVictims(msgspec.Struct, gc=False):
    pods: list[_MetaPod] | None = msgspec.field(name="Pods", default=None)
    violations: int = msgspec.field(name="NumPDBViolations", default=0)


class _FullVictims(msgspec.Struct, gc=False):
    pods: list[_Object] | None = msgspec.field(name="Pods", default=None)
    violations: int = msgspec.field(name="NumPDBViolations", default=0)


class _PreemptionArgs(msgspec.Struct, gc=False):
    pod: Pod = msgspec.field(name="Pod")
    full: dict[str, _FullVictims] | None = msgspec.field(name="NodeNameToVictims", default=None)
    meta: dict[str, _MetaVictims] | None = msgspec.field(name="NodeNameToMetaVictims", default=None)


_ARGS = msgspec.json.Decoder(_Args)
_PREEMPTION = msgspec.json.Decoder(_PreemptionArgs)
_NODE = msgspec.json.Decoder(_Object)
_KEYS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def read_question(body: Body, known: Iterable[NodeList] = ()) -> Question:
    """Read what comes to /filter and /prioritize (ExtenderArgs).

    `known` are lists of names that were read before, and need not be read again.
    """
    args = _decoded(_ARGS, body, ("Pod", "Nodes", "NodeNames"))
    pod = _checked(args.pod)
    names = bytes(args.names)
    if names != b"null":
        return Question(pod, _listed(names, known), None)
    if args.nodes is None:
        raise BadQuestion("neither NodeNames nor Nodes")
    items = args.nodes.items or []
    return Question(pod, NodeList([name_of(item) for item in items]), items)


def _listed(names: bytes, known: Iterable[NodeList]) -> NodeList:
    try:
        return read_names(names, known)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BadQuestion("NodeNames is no list of names") from None


def read_preemption(body: Body) -> Preemption:
    """Read what comes to /preempt (ExtenderPreemptionArgs)."""
    keys = ("Pod", "NodeNameToVictims", "NodeNameToMetaVictims")
    args = _decoded(_PREEMPTION, body, keys)
    victims = {
        name: Victims(tuple(pod.uid for pod in each.pods or ()), each.violations)
        for name, each in (args.meta or {}).items()
    }
    for name, full in (args.full or {}).items():
        uids = tuple(pod.metadata.uid for pod in full.pods or ())
        victims.setdefault(name, Victims(uids, full.violations))
    return Preemption(_checked(args.pod), victims)


def _decoded(decoder: msgspec.json.Decoder[T], body: Body, keys: Sequence[str]) -> T:
    """Decode, and only where the keys do not fit look whether they are spelled in another case."""
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        pass
    try:
        return decoder.decode(_respelled(body, keys))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise BadQuestion("not the JSON that kube-scheduler sends") from None


def _respelled(body: Body, keys: Sequence[str]) -> bytes:
    exact = {key.lower(): key for key in keys}
    found: dict[str, msgspec.Raw] = {}
    for key, value in _KEYS.decode(body).items():
        known = exact.get(key.lower())
        if known in found:
            raise BadQuestion("a key comes twice")
        if known is not None:
            found[known] = value
    return msgspec.json.encode(found)


def _checked(pod: Pod) -> Pod:
    if not pod.metadata.uid:
        raise BadQuestion("the pod has no uid")
    return pod


def name_of(node: Piece) -> str:
    """Read the name of a whole node; raises BadQuestion where it is no node with a name."""
    try:
        name = _NODE.decode(node).metadata.name
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BadQuestion("a node that is not one") from None
    if not name:
        raise BadQuestion("a node without a name")
    return name


# ---- what goes out


_encode = msgspec.json.Encoder().encode


def filter_answer(
    question: Question,
    passed: NodeList,
    failed: Mapping[str, str],
    unresolvable: Mapping[str, str],
) -> Sequence[bytes | Piece]:
    """Write an ExtenderFilterResult, in the form in which the question came; in parts."""
    answer: dict[str, Any] = {
        "FailedNodes": failed,
        "FailedAndUnresolvableNodes": unresolvable,
        "Error": "",
    }
    if question.nodes is None:
        names = orjson.Fragment(passed.text)
        return (orjson.dumps({"Nodes": None, "NodeNames": names} | answer),)
    rest = orjson.dumps({"NodeNames": None} | answer)
    return (_BEFORE_NODES, *_kept(question.names, question.nodes, passed), _AFTER_NODES, rest[1:])


_BEFORE_NODES: Final = b'{"Nodes":{"metadata":{},"items":['
_AFTER_NODES: Final = b"]},"


def _kept(
    names: Sequence[str], nodes: Sequence[Piece], passed: NodeList
) -> Sequence[bytes | Piece]:
    """The nodes that are left, with commas between them."""
    left = set(passed.names)
    kept = [node for name, node in zip(names, nodes, strict=True) if name in left]
    parts: list[bytes | Piece] = [b","] * max(2 * len(kept) - 1, 0)
    parts[0::2] = kept
    return parts


def priorities_answer(nodes: NodeList, scores: Iterable[int]) -> bytes:
    """Write a HostPriorityList: a bare array, a score from 0 to POINTS for each node."""
    if not len(nodes):
        return b"[]"
    pieces = [""] * (2 * len(nodes.names))
    pieces[0::2] = nodes.names if b"\\" not in nodes.text else map(_escaped, nodes.names)
    pieces[1::2] = map(_BETWEEN.__getitem__, scores)
    return f'[{{"Host":"{"".join(pieces).removesuffix(_NEXT)}]'.encode()


_NEXT: Final = ',{"Host":"'
_BETWEEN: Final = tuple(f'","Score":{score}}}{_NEXT}' for score in range(POINTS + 1))
"""What stands between two names, by the score of the first."""


def _escaped(name: str) -> str:
    """The name as it stands between quotes; most lists have nothing to escape."""
    return _encode(name)[1:-1].decode()


def preemption_answer(preemption: Preemption, kept: Iterable[str]) -> bytes:
    """Write an ExtenderPreemptionResult: the nodes that are left, with their victims as given."""
    left = {name: _written(preemption.victims[name]) for name in kept}
    return _encode({"NodeNameToMetaVictims": left})


def _written(victims: Victims) -> dict[str, Any]:
    pods = [{"UID": uid} for uid in victims.uids]
    return {"Pods": pods, "NumPDBViolations": victims.violations}
