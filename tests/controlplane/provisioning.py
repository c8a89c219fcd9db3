"""ProvisioningRequests as an API server takes them, and a stand-in for Cluster Autoscaler.

The schema is of our own, with the bounds that Cluster Autoscaler's definition has: names, counts,
how many pod sets there may be, and that what is asked for never changes.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from kube.objects.names import NODES_ATTEMPT
from kube.objects.provisioning import KIND
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json

CLASS = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_FIXED = {"x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "is immutable"}]}


def definition(path: Path) -> Path:
    """Write the CustomResourceDefinition."""
    name = {"type": "string", "pattern": _NAME, "maxLength": 253}
    reference = {"type": "object", "required": ["name"], "properties": {"name": name}}
    pod_set = {
        "type": "object",
        "required": ["count", "podTemplateRef"],
        "properties": {
            "count": {"type": "integer", "format": "int32", "minimum": 1},
            "podTemplateRef": reference,
        },
    }
    spec = {
        "type": "object",
        "required": ["podSets", "provisioningClassName"],
        "properties": {
            "podSets": {"type": "array", "items": pod_set, "minItems": 1, "maxItems": 32, **_FIXED},
            "provisioningClassName": {**name, **_FIXED},
            "parameters": {
                "type": "object",
                "additionalProperties": {"type": "string", "maxLength": 255},
                "maxProperties": 100,
                **_FIXED,
            },
        },
    }
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {
        "type": "object",
        "required": ["spec"],
        "properties": {"spec": spec, "status": status},
    }
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    named = {"kind": KIND, "listKind": f"{KIND}List", "plural": "provisioningrequests"}
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "provisioningrequests.autoscaling.x-k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": "autoscaling.x-k8s.io",
            "names": {**named, "singular": "provisioningrequest"},
            "scope": "Namespaced",
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }
    path.write_text(json.dumps(body), encoding="utf-8")
    return path


class Autoscaler:
    """Answers the requests of a plot, as a test has it; the nodes are the test's to add."""

    def __init__(self, plot: Plot) -> None:
        self._plot = plot

    def requests(self) -> list[Json]:
        """All requests of the plot."""
        return self._plot.all(KIND)

    def templates(self) -> dict[str, Json]:
        """The pod templates of the plot, by name."""
        return {each["metadata"]["name"]: each for each in self._plot.all("PodTemplate")}

    def wait_asked(self, attempt: int = 1) -> Json:
        """Wait for one request, that of this attempt."""

        def asked() -> Json:
            found = self.requests()
            notes = [each["metadata"]["annotations"][NODES_ATTEMPT] for each in found]
            return found[0] if notes == [str(attempt)] else {}

        return self._plot.wait(asked, f"nodes to be asked for, attempt {attempt}")

    def say(self, request: Json, kind: str, reason: str, message: str) -> None:
        """Add a condition that is true to the status of a request."""
        name = request["metadata"]["name"]
        before = self._plot.get(KIND, name).get("status", {}).get("conditions", [])
        condition = {
            "type": kind,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        self._plot.patch_status(KIND, name, {"conditions": [*before, condition]})

    def wait_nothing_asked(self) -> None:
        """Wait until nothing is left of any request."""
        self._plot.wait(
            lambda: not self.requests() and not self.templates(), "the request to be gone"
        )
