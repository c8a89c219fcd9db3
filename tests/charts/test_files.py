"""The chart in the repository is the one that `make chart` writes, as far as is cheap to tell.

`tests/manifests/test_chart.py` writes it anew and compares, which needs kubectl.
"""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
import yaml

from charts import values
from charts.files import CHART, DIGEST, INSTALL, TABLE, digest
from charts.openings import FIXED
from charts.values import SETTINGS, Value, settings_schema
from tests.packaging.tree import ROOT

Json = dict[str, Any]


def test_the_chart_was_written_from_these_manifests() -> None:
    assert DIGEST.read_text().strip() == digest(), "run `make chart`"


def every() -> list[Value]:
    """All values, with the resources that are written."""
    written = yaml.safe_load((CHART / "values.yaml").read_text())
    asked = {
        name: each["resources"] for name, each in written.items() if "resources" in (each or {})
    }
    return values.values(asked)


def test_values_and_schema_are_those_of_the_settings() -> None:
    assert (CHART / "values.yaml").read_text() == values.values_file(every())
    assert (CHART / "values.schema.json").read_text() == values.schema(every())


def test_the_documentation_has_the_table() -> None:
    (found,) = TABLE.findall(INSTALL.read_text(encoding="utf-8"))
    assert found == values.table(every())


def test_the_chart_has_the_version_of_the_programs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == project["version"]


@pytest.mark.parametrize("program", SETTINGS)
def test_every_setting_is_a_value_or_goes_with_the_manifests(program: str) -> None:
    allowed = {*settings_schema(program)["properties"]}
    there = {name.upper() for name in SETTINGS[program].model_fields}
    assert allowed < there
    assert there - allowed <= FIXED | {"APP_WRAPPERS", "PROVISIONING"}


def test_the_limits_of_a_setting_are_in_the_schema() -> None:
    coordinator = settings_schema("coordinator")["properties"]
    assert coordinator["CONCURRENCY"] == {"type": "integer", "minimum": 1, "maximum": 500}
    assert coordinator["GUARD"]["enum"] == ["Nomination", "Extender", "None"]
    assert coordinator["PROFILES"] == {"type": ["array", "object", "string"]}


def test_nothing_is_allowed_that_has_no_value() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())

    def closed(found: Json, path: str) -> None:
        for name, each in found["properties"].items():
            if "properties" in each:
                assert each["additionalProperties"] is False, f"{path}{name}"
                closed(each, f"{path}{name}.")

    assert schema["additionalProperties"] is False
    closed(schema, "")
