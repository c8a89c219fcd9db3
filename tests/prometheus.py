"""The real promtool and Prometheus, built by the testbed when a test first asks for them."""

import json
import re
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import yaml

from testbed.build import Artifacts, build
from testbed.recipes import PROMETHEUS

Json = dict[str, Any]


def programs() -> Artifacts:
    return build([PROMETHEUS], print)


def promtool(*arguments: str, given: str = "") -> str:
    """What promtool says; an error where it finds anything."""
    command = [str(programs().program("promtool")), *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def write_rules(path: Path, rules: list[Json]) -> Path:
    """Write rules as Prometheus itself reads them, without the object around."""
    path.write_text(yaml.safe_dump({"groups": [{"name": "muster", "rules": rules}]}))
    return path


def filled_in(expression: str, queue: str = "default", interval: str = "1m") -> str:
    """An expression of a dashboard with a value for each variable."""
    return re.sub(r"\$\w+", queue, expression.replace("$__rate_interval", interval))


def without_condition(expression: str) -> str:
    """The figures that an alert compares, which are there whether it fires or not."""
    compared = re.sub(r" (==|!=|>=?|<=?) ", r" \1 bool ", expression)
    return compared.replace("absent(", "(")


def ask(port: int, path: str, **parameters: str) -> Any:
    """The data that Prometheus answers with."""
    query = urllib.parse.urlencode(parameters)
    url = f"http://127.0.0.1:{port}/api/v1/{path}?{query}"
    with urllib.request.urlopen(url, timeout=120) as answer:
        found = json.load(answer)
    assert found["status"] == "success", found
    return found["data"]


def vector(port: int, expression: str, *labels: str) -> dict[tuple[str, ...], float]:
    """The samples of an instant query, by the values of some labels."""
    found = ask(port, "query", query=expression)["result"]
    return {
        tuple(each["metric"].get(name, "") for name in labels): float(each["value"][1])
        for each in found
    }
