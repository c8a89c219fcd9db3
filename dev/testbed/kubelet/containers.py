"""Reads what the kubelet would start for a container, and writes how it ended."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, datetime

from testbed.api import Api, Json
from testbed.errors import TestbedError

_KILLED = 128
"""What a container runtime adds to the number of the signal that ended a process."""


def command(container: Json, addresses: Mapping[str, str]) -> list[str]:
    """Return the words of its command; `addresses` replace names that lead nowhere here."""
    words = [*container.get("command", ()), *container.get("args", ())]
    if not words:
        raise TestbedError(f"container {container['name']} has no command of its own")
    return [_led(word, addresses) for word in words]


def environment(
    container: Json, api: Api, namespace: str, addresses: Mapping[str, str]
) -> dict[str, str]:
    """Return its variables, those of Secrets among them."""
    return {
        each["name"]: _led(_value(each, api, namespace), addresses)
        for each in container.get("env", ())
    }


def _led(text: str, addresses: Mapping[str, str]) -> str:
    for name, address in list(addresses.items()):  # it may grow meanwhile
        text = text.replace(name, address)
    return text


def _value(variable: Json, api: Api, namespace: str) -> str:
    if "valueFrom" not in variable:
        return str(variable.get("value", ""))
    source = variable["valueFrom"].get("secretKeyRef")
    if source is None:
        raise TestbedError(f"variable {variable['name']}: only those of Secrets are played here")
    secret = api.get(f"/api/v1/namespaces/{namespace}/secrets/{source['name']}")
    return base64.b64decode(secret["data"][source["key"]]).decode()


def ended(pod: Json, code: int, began: str) -> Json:
    """Return the status of a pod whose only container ended so; negative is the signal's number."""
    (container,) = pod["spec"]["containers"]
    code = code if code >= 0 else _KILLED - code
    reason = "Completed" if code == 0 else "Error"
    times = {"startedAt": began, "finishedAt": now()}
    status = {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": False,
        "started": False,
        "restartCount": 0,
        "state": {"terminated": {"exitCode": code, "reason": reason, **times}},
    }
    return {"phase": "Succeeded" if code == 0 else "Failed", "containerStatuses": [status]}


def now() -> str:
    """The time as Kubernetes writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
