"""What the API server and the coordinator ask of GangQueues, checked without either."""

import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import yaml

from cli.imports.manifest import document
from cli.imports.naming import is_valid
from cli.imports.outcome import Fault, Outcome, Remark, Source
from kube.codec.queues.queue import read_queue
from kube.objects.queues.queue import GangQueue
from kube.objects.schema import QUANTITY_PATTERN
from scheduling.model.queue import Queue
from scheduling.queueing.faults import faults
from scheduling.queueing.quota_tree import QuotaTree

Json = dict[str, Any]


def source(body: Json, place: str = "x.yaml: document 1") -> Source:
    """An object as it comes from a file."""
    return Source(place, body["apiVersion"].rpartition("/")[0], body["kind"], body)


def sources(*bodies: Json) -> list[Source]:
    return [source(each) for each in bodies]


def specs(outcome: Outcome) -> dict[str, Json]:
    """The specs by the queues' names, as they are printed."""
    return {each["metadata"]["name"]: each.get("spec", {}) for each in printed(outcome)}


def printed(outcome: Outcome) -> list[Json]:
    """The documents of the output, read back."""
    return [each for each in yaml.safe_load_all(document(outcome)) if each]


def fields(remarks: Iterable[Remark]) -> set[tuple[str, str, str]]:
    """Object, field and value of remarks."""
    return {(each.subject, each.field, each.value) for each in remarks}


def tried(imported: Callable[..., Outcome], *bodies: Json) -> tuple[Outcome, str]:
    """The outcome, or none and what is wrong."""
    try:
        return imported(*bodies), ""
    except Fault as fault:
        return Outcome(), str(fault)


def queues_of(outcome: Outcome) -> dict[str, Queue]:
    """The queues as the coordinator reads them, after a check that all of them can work."""
    bodies = printed(outcome)
    assert len({each["metadata"]["name"] for each in bodies}) == len(outcome.queues)
    for body in bodies:
        _assert_accepted(body)
    found = [read_queue(msgspec.convert(each, GangQueue)) for each in bodies]
    queues = {each.name: each for each in found}
    assert faults(queues) == {}
    return queues


def tree_of(outcome: Outcome) -> QuotaTree:
    """The quota of the queues, as the coordinator counts it."""
    return QuotaTree(queues_of(outcome).values())


def _assert_accepted(body: Json) -> None:
    """Hold an object to what the definition of GangQueue says of it."""
    spec = body.get("spec", {})
    assert is_valid(body["metadata"]["name"])
    for name in ("quota", "borrowingLimit", "lendingLimit"):
        amounts = spec.get(name, {})
        assert len(amounts) <= 64
        for amount in amounts.values():
            assert isinstance(amount, str | int)
            assert len(str(amount)) <= 32
            assert re.fullmatch(QUANTITY_PATTERN, str(amount))
        assert name == "quota" or not amounts or spec["parent"]
