"""The paths of both HTTPS servers, with the bodies that mutations start from."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from kube.objects import names
from tests.fuzz.mutations import Recorded, recorded
from tests.webhook import test_holding, wrappers

TESTS = Path(__file__).parent.parent
_DECODED = msgspec.json.Decoder()
"""It refuses what Go's own would read otherwise, such as NaN and lone surrogates."""


@dataclass(frozen=True)
class Case:
    """A path of a server, what is sent there, and what an answer with 200 has to be."""

    server: str
    path: str
    originals: tuple[Recorded, ...]
    expect: Callable[[bytes], None]
    requests: tuple[bytes, ...] = ()
    """Whole requests, if it is their heads that are changed and not the bodies."""

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{self.server}{self.path}" + (" (heads)" if self.requests else "")


# ---- the answers


def _review(body: bytes) -> None:
    """An AdmissionReview as the API server takes it."""
    response = _DECODED.decode(body)["response"]
    assert isinstance(response["uid"], str), body
    assert isinstance(response["allowed"], bool), body
    if "patch" in response:
        assert response["patchType"] == "JSONPatch", body
        assert _DECODED.decode(base64.b64decode(response["patch"])), body


def _filtered(body: bytes) -> None:
    """An ExtenderFilterResult without an error: names or whole nodes, never both.

    Whole nodes go back as they came, to the letter; Go reads odd letters in them as U+FFFD.
    """
    result = json.loads(body.decode(errors="replace"), parse_int=str)
    assert (result["Nodes"] is None) != (result["NodeNames"] is None), body
    assert result["Error"] == "", body


def _prioritized(body: bytes) -> None:
    """A HostPriorityList with scores that kube-scheduler takes."""
    for each in _DECODED.decode(body):
        assert isinstance(each["Host"], str), body
        assert 0 <= each["Score"] <= 10, body


def _preempted(body: bytes) -> None:
    """An ExtenderPreemptionResult."""
    assert isinstance(_DECODED.decode(body)["NodeNameToMetaVictims"], dict), body


# ---- the bodies


def _files(folder: str, pattern: str) -> tuple[Recorded, ...]:
    return tuple(recorded(path.read_bytes()) for path in sorted((TESTS / folder).glob(pattern)))


def _built(reviews: Iterable[Any]) -> tuple[Recorded, ...]:
    return tuple(recorded(json.dumps(each).encode()) for each in reviews)


def _pods() -> tuple[Recorded, ...]:
    """The recorded reviews, and a worker that names an AppWrapper."""
    worker = json.loads((TESTS / "webhook/reviews/worker.json").read_bytes())
    labels = worker["request"]["object"]["metadata"]["labels"]
    labels |= {names.APP_WRAPPER: "aw", names.APP_WRAPPER_UID: "w-1"}
    return (*_files("webhook/reviews", "*.json"), *_built((worker,)))


def _ray_clusters() -> tuple[Recorded, ...]:
    sample = json.loads((TESTS / "kube/samples/raycluster.json").read_bytes())
    sample["metadata"]["annotations"] = dict(test_holding.WHEN_ADMITTED)
    by_job = json.loads(json.dumps(sample))
    by_job["metadata"]["ownerReferences"] = [test_holding.made_by("RayJob")]
    return _built(map(test_holding.review_of, (sample, by_job)))


def _app_wrappers() -> tuple[Recorded, ...]:
    inside = (wrappers.config_map(), wrappers.deployment())
    new = wrappers.wrapper(*inside)
    noted = wrappers.wrapper(*inside, note=wrappers.JOES_NOTE)
    of_mcad = wrappers.of_mcad(*inside, note=wrappers.JOES_NOTE)
    edited = wrappers.wrapper(
        wrappers.deployment("other"), note=wrappers.JOES_NOTE, phase="Running"
    )
    pairs = ((new, None), (noted, None), (of_mcad, None), (edited, noted), (of_mcad, of_mcad))
    return _built(wrappers.review_of(*pair) for pair in pairs)


_ASKED = (*_files("extender/bodies", "names-*.json"), *_files("extender/bodies", "nodes-*.json"))
_VICTIMS = _files("extender/bodies", "*victims-*.json")
_WRAPPED = _app_wrappers()


def _requests(path: str, original: Recorded) -> tuple[bytes, ...]:
    """One request with a length, one in chunks, and two after each other."""
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n".encode()
    body = original.body
    whole = head + f"Content-Length: {len(body)}\r\n\r\n".encode() + body
    chunks = f"Transfer-Encoding: chunked\r\n\r\n{len(body):x}\r\n".encode() + body
    return whole, head + chunks + b"\r\n0\r\n\r\n", whole + whole


_PLAIN = _files("webhook/reviews", "plain.json")

CASES = {
    case.name: case
    for case in (
        Case("webhook", "/mutate", _pods(), _review),
        Case("webhook", "/hold", _ray_clusters(), _review),
        Case("webhook", "/note-app-wrapper", _WRAPPED, _review),
        Case("webhook", "/judge-app-wrapper", _WRAPPED, _review),
        Case("webhook", "/mutate", _PLAIN, _review, _requests("/mutate", _PLAIN[0])),
        Case("extender", "/filter", _ASKED[:1], _filtered, _requests("/filter", _ASKED[0])),
        Case("extender", "/filter", _ASKED, _filtered),
        Case("extender", "/prioritize", _ASKED, _prioritized),
        Case("extender", "/preempt", _VICTIMS, _preempted),
    )
}
