"""Reviews of AppWrappers as kube-apiserver sends them."""

from __future__ import annotations

import copy
from typing import Any

from kube.objects import names
from kube.objects.user import User, write_user
from tests.webhook.samples import Json

JOE: Json = {"username": "joe", "uid": "u", "groups": ["team"], "extra": {"scopes": ["a"]}}
JOES_NOTE = write_user(User("joe", "u", ("team",), {"scopes": ("a",)}))
ANNS: Json = {"username": "ann", "groups": []}


def config_map(name: str = "settings") -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def deployment(name: str = "web") -> Json:
    template = {"spec": {"containers": [{"name": "main", "image": "none"}]}}
    spec = {"replicas": 1, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def wrapper(*templates: Json, note: str | None = None, phase: str = "", **spec: Any) -> Json:
    """Return an AppWrapper of v1beta2."""
    metadata: Json = {"name": "aw", "namespace": "demo", "uid": "w-1"}
    if note is not None:
        metadata["annotations"] = {names.CREATED_BY: note}
    made: Json = {
        "apiVersion": names.CODEFLARE_V1BETA2,
        "kind": names.APP_WRAPPER_KIND,
        "metadata": metadata,
        "spec": {"components": [{"template": each} for each in templates], **spec},
    }
    return made | ({"status": {"phase": phase}} if phase else {})


def of_mcad(*templates: Json, note: str | None = None) -> Json:
    """Return an AppWrapper of v1beta1."""
    made = wrapper(note=note)
    made["apiVersion"] = names.MCAD_V1BETA1
    made["spec"] = {"resources": {"GenericItems": [{"generictemplate": e} for e in templates]}}
    return made


def review_of(new: Json, old: Json | None = None, user: Json = JOE, **request: Any) -> Json:
    """Return the review of an AppWrapper that is created, or edited."""
    group, _, version = new["apiVersion"].partition("/")
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "r",
            "kind": {"group": group, "version": version, "kind": names.APP_WRAPPER_KIND},
            "operation": "CREATE" if old is None else "UPDATE",
            "namespace": "demo",
            "userInfo": user,
            "object": copy.deepcopy(new),
            "oldObject": copy.deepcopy(old),
            **request,
        },
    }
