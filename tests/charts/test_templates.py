"""What objects are in many worlds becomes one template, in which every world can be found again.

Templates are read here by a reader of conditions of one switch each; Helm itself reads the chart in
`tests/manifests/test_chart.py`.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from charts.merging import Verbatim, merged
from charts.openings import opened, unset
from charts.worlds import World
from charts.writing import Writer

Json = dict[str, Any]
WORDS = {"a": ".Values.a", "b": ".Values.b"}
NONE: World = frozenset()
A, B = frozenset("a"), frozenset("b")


def template(variants: dict[World, Any], *more: World) -> str:
    universe = frozenset((*variants, *more))
    return Writer(WORDS, unset).document(merged(variants), universe)


def read(text: str, world: World) -> list[Any]:
    """Render conditions of one switch, and namespaces."""
    kept: list[str] = []
    stack: list[bool] = []
    for line in text.splitlines():
        match = re.fullmatch(r"\{\{- (?:if (not )?\.Values\.(\w)|(else|end)) \}\}", line)
        if match is None:
            kept += [line] if all(stack) else []
        elif match[3] == "end":
            stack.pop()
        elif match[3] == "else":
            stack.append(not stack.pop())
        else:
            stack.append((match[2] in world) is not bool(match[1]))
    plain = ("\n".join(kept) + "\n").replace("{{ .Release.Namespace | quote }}", "muster-system")
    filled = plain.replace("{{ .Release.Namespace }}", "muster-system")
    return [each for each in yaml.safe_load_all(filled.replace('{{ "{{" }}', "{{")) if each]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"x": 1}, {"x": 2}),
        ({"x": 1}, {"x": 1, "y": {"z": [1, 2]}}),
        ({"x": {"y": 1, "z": 2}}, {"x": {"z": 3}}),
        ({"x": [{"name": "p", "v": 1}]}, {"x": [{"name": "q"}, {"name": "p", "v": 2}]}),
        ({"x": [{"name": "p"}]}, {"x": [{"name": "p", "v": {}}, "plain"]}),
        ({"x": ["p", "q"]}, {"x": ["q", "p"]}),
        ({"x": ["p", "p"]}, {"x": ["p"]}),
        ({"x": [{"a": 1}, {"b": 2}]}, {"x": []}),
        ({"x": "text"}, {"x": {"y": [1, {"z": 2}]}}),
        ({"x": "1"}, {"x": "true"}),
        ({"x": "first\nsecond\n"}, {"x": "  first\nsecond"}),
        ({"x": "first\n\n  second"}, {"x": "ends with two\n\n"}),
        ({"x": "{{ $labels.queue }}"}, {"x": "svc.muster-system.svc"}),
        ({"x": "muster-system"}, {"x": ["muster-system", "kube-system"]}),
        ({"x": None}, {"x": "a: b # c"}),
    ],
    ids=str,
)
def test_each_world_is_found_again(one: Json, other: Json) -> None:
    text = template({NONE: one, A: other})
    assert read(text, NONE) == [one]
    assert read(text, A) == [other]


def test_an_object_of_some_worlds_has_a_condition_around_it() -> None:
    text = template({A: {"x": 1}}, NONE)
    assert (read(text, NONE), read(text, A)) == ([], [{"x": 1}])


def test_a_part_of_the_base_alone_has_a_condition() -> None:
    """Nothing on is a world like the others."""
    text = template({NONE: {"x": 1, "y": 2}, A: {"x": 1}, B: {"x": 1}})
    assert "and (not .Values.a) (not .Values.b)" in text


def test_one_of_two_is_said_once() -> None:
    text = template({NONE: {"x": 1}, A: {"x": 2}})
    assert text.count("{{- if") == text.count("{{- else }}") == 1


def test_text_of_templates_stands_as_it_is() -> None:
    item = {"spec": {"k": Verbatim("{{ .Values.v }}"), Verbatim("{{- with @ }}\nat: @@"): None}}
    assert template({NONE: item}).splitlines() == [
        "---", "spec:", "  k: {{ .Values.v }}", "{{- with 2 }}", "  at: 4",
    ]  # fmt: skip


# ---- what values say


def deployment(*variables: Json) -> Json:
    container = {"name": "webhook", "image": "muster:dev", "resources": {}, "env": [*variables]}
    spec = {"containers": [container], "priorityClassName": "high"}
    return {
        "kind": "Deployment",
        "metadata": {"name": "muster-webhook"},
        "spec": {"replicas": 2, "template": {"spec": spec}},
    }


def test_a_deployment_is_opened_for_values() -> None:
    text = template({NONE: opened(deployment())})
    for value in (
        "webhook.replicas 2",
        "webhook.resources",
        "webhook.settings",
        "priorityClassName",
    ):
        assert f".Values.{value}" in text
    assert 'image: {{ include "muster.image" . }}' in text
    assert "muster:dev" not in text


def test_a_variable_gives_way_to_a_setting_but_for_those_that_are_fixed() -> None:
    given = {"name": "MUSTER_WEBHOOK_DRAIN_SECONDS", "value": "5"}
    fixed = {"name": "MUSTER_WEBHOOK_LISTEN_ADDRESS", "value": "0.0.0.0"}
    field = {"name": "MUSTER_WEBHOOK_SOME", "valueFrom": {"fieldRef": {}}}
    text = template({NONE: opened(deployment(given, fixed, field))})
    assert text.count("hasKey") == 1
    assert 'not (hasKey .Values.webhook.settings "DRAIN_SECONDS")' in text


def test_a_definition_can_be_kept() -> None:
    found = {"kind": "CustomResourceDefinition", "metadata": {"name": "x"}}
    assert "helm.sh/resource-policy: keep" in template({NONE: opened(found)})
    noted = {"kind": found["kind"], "metadata": {"name": "x", "annotations": {"a": "b"}}}
    text = template({NONE: opened(noted)})
    assert text.count("annotations:") == 1
    assert "a: b" in text
