"""Writes GangQueues as YAML that kubectl and the API server read without surprises.

Fields at their defaults are left out. A text is quoted unless no reader of YAML could take it for
something else. What was left out stands in comments above, in which no value can begin a new line.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import yaml

from cli.imports.outcome import Outcome, Remark
from kube.objects import names
from kube.objects.queues.queue import GangQueue

SHOWN = 200
"""Characters of a value in a remark."""

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9]*([./-][A-Za-z0-9]+)*|[0-9]+([KMGTPE]i|[mkMGTP])")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def document(outcome: Outcome) -> str:
    """Return the remarks as comments, and the queues, parents first."""
    lines = [f"# {line}" for line in remarks(outcome)]
    comments = "\n".join(lines) + "\n" if lines else ""
    return comments + "".join(f"---\n{_queue(each)}" for each in _parents_first(outcome.queues))


def remarks(outcome: Outcome) -> Iterator[str]:
    """Yield one line for each remark."""
    for said, found in (("left out", outcome.left_out), ("to do", outcome.advice)):
        yield from (f"{said}: {_line(each)}" for each in found)


def _line(remark: Remark) -> str:
    value = f" = {one_line(remark.value)}" if remark.value else ""
    where = f"{one_line(remark.subject)}: {one_line(remark.field)}{value}"
    return f"{where}: {one_line(remark.advice, 600)}"


def one_line(text: str, shown: int = SHOWN) -> str:
    """Return the text with what ends a line, or moves a terminal's cursor, spelled out."""
    cut = text if len(text) <= shown else text[:shown] + "..."
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in cut)


def _parents_first(queues: Iterable[GangQueue]) -> Iterator[GangQueue]:
    """Yield each queue before those below it, by name."""
    below: defaultdict[str, list[GangQueue]] = defaultdict(list)
    for queue in sorted(queues, key=lambda each: each.metadata.name, reverse=True):
        below[queue.spec.parent].append(queue)
    waiting = below[""]
    while waiting:
        queue = waiting.pop()
        yield queue
        waiting += below[queue.metadata.name]


def _queue(queue: GangQueue) -> str:
    metadata = {"name": queue.metadata.name}
    spec = _said(queue.spec)
    body = {"apiVersion": names.API_VERSION, "kind": "GangQueue", "metadata": metadata}
    whole = body | ({"spec": spec} if spec else {})
    text: str = yaml.dump(whole, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return text


def _said(value: Any) -> Any:
    """Return what a struct says beside its defaults."""
    if isinstance(value, msgspec.Struct):
        fields = msgspec.structs.fields(value)
        told = ((each, getattr(value, each.name)) for each in fields)
        return {each.encode_name: _said(found) for each, found in told if found != _default(each)}
    if isinstance(value, tuple):
        return [_said(each) for each in value]
    return dict(value) if isinstance(value, dict) else value


def _default(field: Any) -> Any:
    factory = field.default_factory
    return field.default if factory is msgspec.NODEFAULT else factory()


class _Dumper(yaml.SafeDumper):
    """YAML without anchors, and with quotes where readers of YAML differ."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the signature of the library
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = _PLAIN.fullmatch(text) is not None and text.lower() not in _WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Dumper.add_representer(str, _text)
