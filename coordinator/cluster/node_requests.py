"""Keeps observed ProvisioningRequests by the Gang that owns them."""

from collections import defaultdict

from kube.codec.provisioning import NodeRequest
from scheduling.model.gang import GangKey


class NodeRequests:
    """All requests for nodes that Gangs own.

    `allowed`: this coordinator was set up to ask; None where it is none, and nothing is to be said
    of it, as in a dry run. `listed`: all requests there are have been told;
    before that none is made, for there may be one already.
    """

    def __init__(self, *, allowed: bool | None = None) -> None:
        self.allowed = allowed
        self.listed = False
        self._found: defaultdict[GangKey, dict[str, NodeRequest]] = defaultdict(dict)

    def put(self, seen: NodeRequest) -> NodeRequest | None:
        """Take one in; returns it as it was before."""
        requests = self._found[_gang_of(seen)]
        before = requests.get(seen.name)
        requests[seen.name] = seen
        return before

    def drop(self, gone: NodeRequest) -> None:
        """Forget one, unless another of its name has come."""
        requests = self._found.get(_gang_of(gone), {})
        if gone.name in requests and requests[gone.name].uid == gone.uid:
            del requests[gone.name]
        if not requests:
            self._found.pop(_gang_of(gone), None)

    def of(self, key: GangKey, gang_uid: str) -> list[NodeRequest]:
        """List those that this very Gang owns, by name."""
        found = self._found.get(key, {})
        return [found[name] for name in sorted(found) if found[name].gang_uid == gang_uid]


def _gang_of(request: NodeRequest) -> GangKey:
    return GangKey(request.namespace, request.gang_name)
