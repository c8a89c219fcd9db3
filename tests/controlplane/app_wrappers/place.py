"""Where tests of the webhook write AppWrappers, and what they put into them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kube.objects import names
from testbed.cluster import Cluster
from testbed.errors import TestbedError
from testbed.waiting import wait_until

Json = dict[str, Any]

TENANT, POOR = "tenant", "poor"


class Place:
    """A namespace in which the tenant may edit, and the poor user may write AppWrappers alone."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.cluster.create_namespace(name)
        self._bind(TENANT, "admin")
        for role in ("view", "edit"):
            self._bind(POOR, f"muster-app-wrapper-{role}")
        # The role is filled in by a controller.
        wait_until(lambda: self._may(TENANT), "the tenant to have its rights")

    def clear(self) -> None:
        """Take all of it away; no AppWrapper here has a finalizer."""
        with self.cluster.api.session() as session:
            session.call("DELETE", f"/api/v1/namespaces/{self.name}")

    def _bind(self, user: str, role: str) -> None:
        name = f"{user}-{role}"
        self.kubectl("create", "rolebinding", name, f"--clusterrole={role}", f"--user={user}")

    def _may(self, user: str) -> bool:
        asked = ("auth", "can-i", "create", "appwrappers.workload.codeflare.dev", f"--as={user}")
        try:
            return self.kubectl(*asked).strip() == "yes"
        except TestbedError:
            return False

    def kubectl(self, *args: str, body: Json | None = None) -> str:
        text = None if body is None else json.dumps(body)
        return self.cluster.kubectl("-n", self.name, *args, input=text)

    def send(self, user: str, body: Json, verb: str = "create") -> str:
        """Have a user write an object."""
        own = str(self.cluster.user_kubeconfig(user))
        return self.kubectl("--kubeconfig", own, verb, "-f", "-", body=body)

    def refused(self, user: str, body: Json, verb: str = "create") -> str:
        """Return the words with which an object is refused."""
        with pytest.raises(TestbedError) as caught:
            self.send(user, body, verb)
        return str(caught.value)

    def get(self, name: str, api_version: str = names.CODEFLARE_V1BETA2) -> Json:
        group, _, version = api_version.partition("/")
        path = f"/apis/{group}/{version}/namespaces/{self.name}/appwrappers/{name}"
        return self.cluster.api.get(path)

    def put(self, body: Json, *subresource: str) -> Json:
        path = f"/apis/{body['apiVersion']}/namespaces/{self.name}/appwrappers"
        whole = "/".join((path, body["metadata"]["name"], *subresource))
        with self.cluster.api.session() as session:
            return session.call("PUT", whole, json.dumps(body).encode())

    def pods(self) -> list[Json]:
        found: list[Json] = self.cluster.api.get(f"/api/v1/namespaces/{self.name}/pods")["items"]
        return found


def wrapper(*templates: Json, name: str = "aw", **spec: Any) -> Json:
    components = [{"template": each} for each in templates]
    return {
        "apiVersion": names.CODEFLARE_V1BETA2,
        "kind": "AppWrapper",
        "metadata": {"name": name},
        "spec": {"components": components, **spec},
    }


def config_map(name: str = "settings", **metadata: Any) -> Json:
    found = {"name": name, **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": found, "data": {"a": "b"}}


def deployment(replicas: int = 1, **labels: str) -> Json:
    chosen = {"app": "web", **labels}
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": chosen}, "spec": {"containers": [container]}},
        },
    }
