"""Reads reviews of Ray objects and AppWrappers that may have to be sent to other clusters. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from kube.gang.sent import RESOURCES, kind_of
from kube.objects.base import Labels, ObjectMeta, OrNull, Part, Slim
from kube.objects.user import User
from webhook.admission_review import NAME, BadReview, Request, read_request, unexpected


class CreatedSpec(Part, frozen=True):
    """What of a spec says where it may run."""

    managed_by: str | None = None
    cluster_selector: OrNull[Labels] = msgspec.field(default_factory=dict)


class Created(Slim, frozen=True):
    """A Ray object, or an AppWrapper, that is created."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CreatedSpec | None = None

    @property
    def stands_alone(self) -> bool:
        """Whether no controller made it."""
        return not any(each.controller for each in self.metadata.owner_references)


_CREATED = msgspec.json.Decoder(Created)
_USER = msgspec.json.Decoder(User)
_NO_USER = User()


@dataclass(frozen=True, slots=True)
class DispatchReview:
    """A review as far as it matters here; `created` is None where nothing is to be said."""

    uid: str
    namespace: str = ""
    kind: str = ""
    created: Created | None = None
    user: User = _NO_USER


def read_dispatch_review(body: bytes | bytearray) -> DispatchReview | BadReview:
    """Read what the API server sent about an object."""
    return read_request(body, _review)


def _review(request: Request) -> DispatchReview | BadReview:
    kind, namespace = request.kind, request.namespace or ""
    is_created = request.operation == "CREATE" and not request.sub_resource
    called = kind_of(f"{kind.group}/{kind.version}", kind.kind)
    served = RESOURCES.get(called)
    if not is_created or served is None or served.group != kind.group:
        return DispatchReview(request.uid)
    if not NAME.fullmatch(namespace):
        return unexpected("request.namespace", namespace, "the name of a namespace")
    try:
        found, user = _CREATED.decode(request.object), _USER.decode(request.user_info)
    except msgspec.ValidationError as error:
        return BadReview(400, f"not a {kind.kind} in request.object, or not a user: {error}")
    if found.spec is None:
        return DispatchReview(request.uid)  # the API server refuses it, and says why
    return DispatchReview(request.uid, namespace, called, found, user)
