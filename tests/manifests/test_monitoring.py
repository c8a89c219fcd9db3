"""Alerts, dashboards and what scrapes: each metric in them exists, and each alert has a runbook."""

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from tests.manifests.base import MANIFESTS, documents
from tests.manifests.test_workloads import DEPLOYMENTS
from tests.metrics import OURS, Family, families, samples
from tests.packaging.test_documents import anchors_of
from tests.packaging.test_metrics_table import registries
from tests.packaging.tree import ROOT

Json = dict[str, Any]
MONITORING = MANIFESTS / "monitoring"
DASHBOARDS = sorted((MONITORING / "dashboards").glob("*.json"))
RUNBOOKS = ROOT / "docs" / "runbooks.md"
SEVERITIES = {"critical", "warning", "info"}
OF_PROMETHEUS = {"le", "pod", "namespace", "job", "instance", "container"}
"""Labels that the scrape and histograms bring."""

ELSEWHERE = {"process_resident_memory_bytes"}
COLUMNS = 24

every_dashboard = pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)


def rules() -> list[Json]:
    (rule,) = documents(MONITORING / "rules.yaml")
    return [each for group in rule["spec"]["groups"] for each in group["rules"]]


def panels(path: Path) -> list[Json]:
    found: list[Json] = json.loads(path.read_text(encoding="utf-8"))["panels"]
    return found


def expressions() -> Iterator[tuple[str, str]]:
    """Where it stands, and the expression."""
    for rule in rules():
        yield rule["alert"], rule["expr"]
    for path in DASHBOARDS:
        for panel in panels(path):
            for target in panel["targets"]:
                yield f"{path.stem}: {panel['title']}", target["expr"]


def served() -> dict[str, Family]:
    """The metrics by the names of their samples."""
    found = (each for registry in registries() for each in families(registry).values())
    return {name: each for each in found for name in samples(each)}


def pages() -> list[str]:
    return [generate_latest(registry).decode() for registry in registries()]


# ---- expressions


def test_every_metric_in_an_expression_exists() -> None:
    known = served().keys() | ELSEWHERE
    for where, text in expressions():
        named = set(re.findall(r"\b(?:muster|process|python)_\w+", text))
        assert named, where
        assert named <= known, where


def test_metrics_of_others_that_are_used_are_served_too() -> None:
    for name in ELSEWHERE:
        assert all(f"\n{name} " in page for page in pages()[1:])


def test_every_label_in_an_expression_is_one_of_its_metrics() -> None:
    known = served()
    for where, text in expressions():
        for name, matchers in re.findall(r"\b(muster_\w+)\{([^}]*)\}", text):
            asked = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers))
            assert asked <= {*known[name].labels, *OF_PROMETHEUS}, where
        there = {
            label for name in re.findall(r"\bmuster_\w+", text) for label in known[name].labels
        }
        grouped = re.findall(r"\b(?:by|on|ignoring|without) \(([^)]*)\)", text)
        asked = {label.strip() for labels in grouped for label in labels.split(",")}
        assert asked <= there | OF_PROMETHEUS, where


def test_values_of_labels_in_expressions_are_those_of_the_table() -> None:
    """What the table of metrics does not name a label can never have."""
    table = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(muster_\w+)` \|(.*)\|$", table, re.MULTILINE))
    asked = [
        (name, value)
        for _, text in expressions()
        for name, label, values in re.findall(r"\b(muster_\w+)\{(\w+)[=!]~?\"([^\"$]*)\"", text)
        for value in values.split("|")
        if label not in ("phase", "reason", "size")
    ]
    assert asked
    for name, value in asked:
        assert re.search(rf"\b{value}\b", rows[name]), (name, value)


# ---- alerts


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    for each in rules():
        assert each["annotations"]["runbook"] == f"docs/runbooks.md#{each['alert'].lower()}"
    procedures = {"runbooks", "stop-muster-now"}
    assert {each["alert"].lower() for each in rules()} == anchors_of(RUNBOOKS) - procedures


def test_every_runbook_says_the_cause_what_to_check_and_the_remedy() -> None:
    found = RUNBOOKS.read_text(encoding="utf-8").split("\n## ")[1:]
    sections = [each for each in found if each.startswith("Muster")]
    assert len(sections) == len(rules())
    for section in sections:
        said = re.findall(r"^- \*\*(\w+)\.\*\* \S", section, re.MULTILINE)
        assert said == ["Cause", "Check", "Remedy"], section


def test_every_alert_says_how_bad_it_is_and_waits_before_it_fires() -> None:
    found = rules()
    assert len({each["alert"] for each in found}) == len(found)
    for each in found:
        assert each["labels"]["severity"] in SEVERITIES
        assert re.fullmatch(r"\d+[mh]", each["for"])
        assert each["annotations"]["summary"]


# ---- dashboards


@every_dashboard
def test_panels_of_a_dashboard_do_not_overlap(path: Path) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels(path):
        place = panel["gridPos"]
        across = range(place["x"], place["x"] + place["w"])
        cells = set(itertools.product(across, range(place["y"], place["y"] + place["h"])))
        assert place["x"] + place["w"] <= COLUMNS, panel["title"]
        assert not cells & taken, panel["title"]
        taken |= cells


@every_dashboard
def test_a_dashboard_asks_for_its_data_source_and_says_what_it_shows(path: Path) -> None:
    found = json.loads(path.read_text(encoding="utf-8"))
    variables = {each["name"] for each in found["templating"]["list"]}
    assert "datasource" in variables
    assert len({each["id"] for each in found["panels"]}) == len(found["panels"])
    for panel in found["panels"]:
        assert panel["title"]
        assert panel["targets"]
        used = set(re.findall(r"\$(\w+)", json.dumps(panel["targets"])))
        assert used <= variables | {"__rate_interval"}, panel["title"]


def test_dashboards_have_names_of_their_own() -> None:
    found = [json.loads(path.read_text(encoding="utf-8")) for path in DASHBOARDS]
    assert [each["uid"] for each in found] == ["muster-health", "muster-overview", "muster-queue"]


# ---- what scrapes


def test_the_kustomization_names_every_file() -> None:
    (component,) = documents(MONITORING / "kustomization.yaml")
    (generator,) = component["configMapGenerator"]
    assert component["kind"] == "Component"
    assert {*component["resources"]} == {
        path.name for path in MONITORING.glob("*.yaml") if path.name != "kustomization.yaml"
    }
    assert {*generator["files"]} == {f"dashboards/{path.name}" for path in DASHBOARDS}


def test_every_program_with_a_health_port_is_scraped() -> None:
    (monitor,) = documents(MONITORING / "pod-monitor.yaml")
    (selected,) = monitor["spec"]["selector"]["matchExpressions"]
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert (endpoint["port"], endpoint["path"]) == ("health", "/metrics")
    with_port = {
        each["spec"]["template"]["metadata"]["labels"][selected["key"]]
        for name, each in DEPLOYMENTS.items()
        if name != "muster-scheduler" and _has_port(each, "health")
    }
    assert with_port == set(selected["values"])


def _has_port(deployment: Json, name: str) -> bool:
    containers = deployment["spec"]["template"]["spec"]["containers"]
    return any(port["name"] == name for each in containers for port in each.get("ports", ()))


# ---- pages


def test_every_page_is_read_by_the_parser_of_prometheus_client() -> None:
    for page in pages():
        found = {each.name for each in text_string_to_metric_families(page)}
        assert any(name.startswith(OURS) for name in found)


def test_names_are_as_prometheus_wants_them() -> None:
    """Units are whole words at the end, and only counters end in _total."""
    for page in pages():
        for each in text_string_to_metric_families(page):
            if not each.name.startswith(OURS):
                continue
            assert each.documentation, each.name
            assert re.fullmatch(r"[a-z][a-z0-9_]*", each.name)
            assert not each.name.endswith(("_total", "_count", "_sum", "_bucket", "_info"))
            assert not re.search(r"_(ms|milliseconds|minutes|hours|mb|percent)\b", each.name)


def test_yaml_of_the_rules_is_what_the_operator_takes() -> None:
    (rule,) = yaml.safe_load_all((MONITORING / "rules.yaml").read_text(encoding="utf-8"))
    assert (rule["apiVersion"], rule["kind"]) == ("monitoring.coreos.com/v1", "PrometheusRule")
