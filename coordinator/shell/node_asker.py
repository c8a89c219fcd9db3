"""Creates and deletes ProvisioningRequests with their PodTemplates.

The templates come first: Cluster Autoscaler reads them as soon as it sees the request. Their names
say what is in them, so one that exists already is the right one.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from coordinator.messages.actions import AskedPods, AskForNodes
from kube.api.client import Client
from kube.api.errors import Conflict, KubeError, NotFound
from kube.api.resources import POD_TEMPLATES, PODS, PROVISIONING_REQUESTS
from kube.codec.provisioning import (
    NodeRequest,
    node_request_of,
    owned_by_gang,
    pod_template,
    provisioning_request,
)
from kube.objects import names
from kube.objects.provisioning import ProvisioningRequest


class NodeAsker:
    """Writes the requests for nodes of gangs."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def ask(self, action: AskForNodes) -> NodeRequest | None:
        """Create a request; None where it is there already, which its watch tells of."""
        namespace, owner = action.gang.namespace, owned_by_gang(action.gang.name, action.gang_uid)
        pod_sets: dict[str, int] = {}
        for at, pods in enumerate(action.pods):
            name = f"{action.name}-{at}"
            like = await self._like(namespace, pods)
            body = pod_template(name, owner, namespace, like, dict(pods.labels))
            await self._create_template(namespace, body)
            pod_sets[name] = pods.count
        notes = {names.NODES_ASKED: action.asked, names.NODES_ATTEMPT: str(action.attempt)}
        body = provisioning_request(
            action.name, owner, namespace, action.class_name, action.parameters, pod_sets, notes
        )
        path = PROVISIONING_REQUESTS.path(namespace)
        try:
            created = await self._client.create(path, body, as_=ProvisioningRequest)
        except Conflict:
            return None
        except KubeError as error:
            if not error.outcome_unknown:
                await self._drop_templates(namespace, pod_sets)
            raise
        return node_request_of(created)

    async def _like(self, namespace: str, pods: AskedPods) -> dict[str, Any]:
        if pods.foreseen is not None:
            found: dict[str, Any] = msgspec.to_builtins(pods.foreseen)
            return found
        path = PODS.path(namespace, pods.name)
        like: dict[str, Any] = await self._client.get(path, as_=dict[str, Any])
        if like["metadata"]["uid"] != pods.uid:
            raise Conflict(409, "Conflict", f"pod {pods.name} is another one by now")
        return like

    async def _create_template(self, namespace: str, body: dict[str, Any]) -> None:
        try:
            await self._client.create(POD_TEMPLATES.path(namespace), body, as_=dict[str, Any])
        except Conflict:
            return

    async def drop(self, request: NodeRequest) -> None:
        """Delete a request and its templates; what is gone is as good as deleted."""
        path = PROVISIONING_REQUESTS.path(request.namespace, request.name)
        await self._delete(path, request.uid)
        await self._drop_templates(request.namespace, request.templates)

    async def _drop_templates(self, namespace: str, names_of: Iterable[str]) -> None:
        for name in names_of:
            await self._delete(POD_TEMPLATES.path(namespace, name))

    async def _delete(self, path: str, uid: str | None = None) -> None:
        try:
            await self._client.delete(path, uid=uid)
        except NotFound:
            return
