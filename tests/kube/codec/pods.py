"""Pods for the tests of the codec, written in a line each."""

from typing import Any

import msgspec
import orjson

from kube.codec.pod import pod_shape
from kube.objects.core import Pod

Json = dict[str, Any]


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def pod(spec: Json | None = None, status: Json | None = None, **metadata: Any) -> Pod:
    raw = {"metadata": metadata, "spec": spec or {}, "status": status or {}}
    return msgspec.json.decode(orjson.dumps(raw), type=Pod)


def container(name: str = "c", restart: str | None = None, **requests: Any) -> Json:
    return {"name": name, "restartPolicy": restart, "resources": {"requests": requests}}


def unsupported(**spec: Any) -> tuple[str, ...]:
    return pod_shape(pod(spec)).unsupported
