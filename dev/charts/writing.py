"""Writes a merged object as a template: YAML with conditions around what is not in every world."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import yaml

from charts.conditions import condition
from charts.merging import ALONE, Alternative, Items, Map, Plain, Verbatim, Worlds

NAMESPACE = "muster-system"

Guard = Callable[[Map], str]
"""The condition that an item of a list has beside its worlds; empty where it has none."""


class Writer:
    """Writes in the words of the switches."""

    def __init__(self, words: Mapping[str, str], guard: Guard) -> None:
        self._words = words
        self._guard = guard

    def document(self, alternatives: tuple[Alternative, ...], universe: Worlds) -> str:
        """One object, with its beginning, and a line that ends it."""
        lines: list[str] = []
        for each in alternatives:
            inner = ["---", *self._block(each, 0)]
            lines += self._if(condition(each.worlds, universe, self._words), inner)
        return "\n".join(lines) + "\n"

    def _if(self, said: str, lines: list[str]) -> list[str]:
        return [f"{{{{- if {said} }}}}", *lines, "{{- end }}"] if said else lines

    def _block(self, alternative: Alternative, depth: int) -> list[str]:
        node = alternative.node
        if isinstance(node, Map):
            return [line for e in node.entries for line in self._entry(e, alternative, depth)]
        if isinstance(node, Items):
            return [line for i in node.items for line in self._item(i, alternative, depth)]
        raise TypeError(f"not a block: {node!r}")

    def _entry(
        self, entry: tuple[str, tuple[Alternative, ...]], parent: Alternative, depth: int
    ) -> list[str]:
        key, alternatives = entry
        return self._each(alternatives, parent, lambda each: self._keyed(key, each, depth))

    def _keyed(self, key: str, each: Alternative, depth: int) -> list[str]:
        pad = " " * depth
        if isinstance(key, Verbatim):
            return _verbatim(key, depth)
        name = _scalar(key)
        if isinstance(each.node, Plain):
            return _text(f"{pad}{name}: ", each.node.value, depth)
        inner = depth if isinstance(each.node, Items) else depth + 2
        return [f"{pad}{name}:", *self._block(each, inner)]

    def _item(
        self, alternatives: tuple[Alternative, ...], parent: Alternative, depth: int
    ) -> list[str]:
        def one(each: Alternative) -> list[str]:
            guard = self._guard(each.node) if isinstance(each.node, Map) else ""
            return self._if(guard, self._listed(each, depth))

        return self._each(alternatives, parent, one)

    def _each(
        self,
        alternatives: tuple[Alternative, ...],
        parent: Alternative,
        written: Callable[[Alternative], list[str]],
    ) -> list[str]:
        """All alternatives, each with its condition; of two that leave no third, one."""
        said = [condition(a.worlds, _known(parent, a), self._words) for a in alternatives]
        if len(alternatives) == 2 and _either(alternatives) == parent.worlds:
            first, second = map(written, alternatives)
            return self._if(said[0], [*first, "{{- else }}", *second])
        return [
            line
            for each, when in zip(alternatives, said, strict=True)
            for line in self._if(when, written(each))
        ]

    def _listed(self, each: Alternative, depth: int) -> list[str]:
        pad = " " * depth
        if isinstance(each.node, Plain):
            if isinstance(each.node.value, Verbatim):
                return _verbatim(each.node.value, depth)
            return _text(f"{pad}- ", each.node.value, depth)
        lines = self._block(each, depth + 2)
        if lines[0].startswith("{{-"):  # a condition is in the way of the dash
            return [f"{pad}-", *lines]
        return [f"{pad}- {lines[0][depth + 2 :]}", *lines[1:]]


def _known(parent: Alternative, child: Alternative) -> Worlds:
    """The worlds that a part's are told from; those of a value of its own are not told."""
    return child.worlds if child.worlds == {ALONE} else parent.worlds


def _either(alternatives: tuple[Alternative, ...]) -> Worlds:
    return frozenset().union(*(each.worlds for each in alternatives))


def _verbatim(text: str, depth: int) -> list[str]:
    """The lines of a template; those that are no directive are set in."""
    lines = text.replace("@@", str(depth + 2)).replace("@", str(depth)).splitlines()
    return [line if line.startswith("{{-") else " " * depth + line for line in lines]


def _text(head: str, value: Any, depth: int) -> list[str]:
    """A scalar behind its key or dash; longer texts as a block."""
    if isinstance(value, Verbatim):
        return [f"{head}{value}"]
    if isinstance(value, str) and _is_block(value):
        sign = "|" if value.endswith("\n") else "|-"
        pad = " " * (depth + 2)
        body = (pad + line if line else "" for line in value.splitlines())
        return [f"{head}{sign}", *map(_filled, body)]
    return [head + _filled(_scalar(value))]


def _is_block(value: str) -> bool:
    """Tell whether a block keeps the text as it is."""
    return "\n" in value and not value.endswith("\n\n") and value[0] not in " \n\t"


def _scalar(value: Any) -> str:
    if value == NAMESPACE:
        return "{{ .Release.Namespace | quote }}"
    text: str = yaml.safe_dump(value, width=1 << 30, default_flow_style=True, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("...").removesuffix("\n")


def _filled(text: str) -> str:
    """What Helm is to leave alone is quoted for it, and the namespace is the release's."""
    if text.endswith("{{ .Release.Namespace | quote }}"):
        return text
    return text.replace("{{", '{{ "{{" }}').replace(NAMESPACE, "{{ .Release.Namespace }}")


def documents(text: str) -> Iterator[dict[str, Any]]:
    """The objects that a text of YAML holds."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the definitions are long
    yield from (each for each in yaml.load_all(text, loader) if each)
