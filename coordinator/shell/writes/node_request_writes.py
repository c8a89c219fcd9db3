"""Creates and deletes ProvisioningRequests with their PodTemplates.

The templates come first: Cluster Autoscaler reads them as soon as it sees the request. A template
of that name may be left from a failed try, or may come from a user, so it is created anew.
"""

from collections.abc import Iterable
from typing import Any, TypeAlias

import msgspec
import structlog

from coordinator.messages.actions import AskedPods, AskForNodes, DropNodeRequest
from coordinator.messages.events import Event, NodeRequestGone, NodeRequestSeen
from coordinator.messages.write_ends import NodeRequestWriteEnded
from coordinator.shell.writes.write_outcomes import Outcomes
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

log = structlog.get_logger()

NodeRequestWrite: TypeAlias = AskForNodes | DropNodeRequest


class NodeRequestWrites:
    """Carries out what is to be done to the requests for nodes of gangs."""

    def __init__(self, client: Client, outcomes: Outcomes) -> None:
        self._client = client
        self._outcomes = outcomes

    async def carry_out(self, action: NodeRequestWrite) -> list[Event]:
        """Send one write, and say what became of it."""
        match action:
            case AskForNodes(name=name):
                what = "node_request_create"
            case DropNodeRequest():
                what, name = "node_request_delete", action.request.name
        try:
            seen = await self._sent(action)
        except KubeError as error:
            self._outcomes.failed(what, error)
            gang = str(action.gang)
            log.info("node request failed", gang=gang, what=what, error=str(error))
            return [NodeRequestWriteEnded(action.gang, name, str(error))]
        self._outcomes.done(what)
        return [*seen, NodeRequestWriteEnded(action.gang, name, None)]

    async def _sent(self, action: NodeRequestWrite) -> list[Event]:
        match action:
            case AskForNodes():
                request = await self._ask(action)
                return [NodeRequestSeen(request)] if request is not None else []
            case DropNodeRequest():
                await self._drop(action.request)
                return [NodeRequestGone(action.request)]

    async def _ask(self, action: AskForNodes) -> NodeRequest | None:
        """Create a request; None where it is there already, which its watch tells of."""
        namespace, owner = action.gang.namespace, owned_by_gang(action.gang.name, action.gang_uid)
        pod_sets: dict[str, int] = {}
        for at, pods in enumerate(action.pods):
            name = _template_name(action.name, at)
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
        """Create a template; one that is there may be of anyone, and goes."""
        path = POD_TEMPLATES.path(namespace)
        try:
            await self._client.create(path, body, as_=dict[str, Any])
        except Conflict:
            await self._drop_templates(namespace, [body["metadata"]["name"]])
            await self._client.create(path, body, as_=dict[str, Any])

    async def _drop(self, request: NodeRequest) -> None:
        """Delete a request and its templates; what is gone is as good as deleted.

        Whoever may write requests may have it name templates of others, which are left alone.
        """
        path = PROVISIONING_REQUESTS.path(request.namespace, request.name)
        await self._delete(path, request.uid)
        ours = {_template_name(request.name, at) for at in range(len(request.templates))}
        mine = [each for each in request.templates if each in ours]
        await self._drop_templates(request.namespace, mine)

    async def _drop_templates(self, namespace: str, names_of: Iterable[str]) -> None:
        for name in names_of:
            await self._delete(POD_TEMPLATES.path(namespace, name))

    async def _delete(self, path: str, uid: str | None = None) -> None:
        try:
            await self._client.delete(path, uid=uid)
        except NotFound:
            return


def _template_name(request: str, at: int) -> str:
    return f"{request}-{at}"
