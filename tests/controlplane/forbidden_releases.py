"""Has an admission policy keep the gates on the pods of a Ray cluster, for a while."""

from __future__ import annotations

import contextlib
import http
from collections.abc import Iterator

from tests.controlplane.plot import LABEL, Plot
from tests.controlplane.rayclusters import pod

_API = "/apis/admissionregistration.k8s.io/v1"
POLICIES = f"{_API}/validatingadmissionpolicies"
BINDINGS = f"{_API}/validatingadmissionpolicybindings"


@contextlib.contextmanager
def forbidden_releases(plot: Plot, cluster: str) -> Iterator[None]:
    """An admission policy lets no client take a gate off the pods of a Ray cluster."""
    metadata = {"name": plot.name, "labels": plot.selector}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"]}
    gates = "size({0}.spec.?schedulingGates.orValue([]))"
    ours = f"object.metadata.name.startsWith('{cluster}-')"
    kept = f"{gates.format('object')} >= {gates.format('oldObject')}"
    spec = {
        "matchConstraints": {"resourceRules": [{**rule, "resources": ["pods"]}]},
        "validations": [{"expression": f"!({ours}) || {kept}"}],
    }
    where = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": plot.name}}}
    binding = {"policyName": plot.name, "validationActions": ["Deny"], "matchResources": where}
    api = plot.cluster.api
    try:
        api.create(POLICIES, {"metadata": metadata, "spec": spec})
        api.create(BINDINGS, {"metadata": metadata, "spec": binding})
        wait_in_force(plot, cluster)
        yield
    finally:
        with api.session() as session:
            session.call("DELETE", f"{BINDINGS}?labelSelector={LABEL}%3D{plot.name}")
            session.call("DELETE", f"{POLICIES}?labelSelector={LABEL}%3D{plot.name}")


def wait_in_force(plot: Plot, cluster: str) -> None:
    """Wait until a pod that is named like those of the Ray cluster cannot lose its gate."""
    name = f"{cluster}-probe"
    plot.create(pod(name, schedulingGates=[{"name": "example.com/x"}]))
    path = f"/api/v1/namespaces/{plot.name}/pods/{name}?dryRun=All"
    patch = b'[{"op": "remove", "path": "/spec/schedulingGates"}]'

    def refused() -> bool:
        with plot.cluster.api.session() as session:
            status, _ = session.request("PATCH", path, patch, "application/json-patch+json")
        return status == http.HTTPStatus.UNPROCESSABLE_ENTITY

    plot.wait(refused, "the policy to be in force")
    plot.delete("Pod", name)
    plot.wait_no_pods()
