"""Kubeconfigs and plugins, for the tests beside it."""

from pathlib import Path
from typing import Any

import orjson


def write_kubeconfig(path: Path, server: str, user: dict[str, Any], authority: str = "") -> str:
    trusted = {"certificate-authority": authority} if authority else {}
    cluster = {"name": "c", "cluster": {"server": server, **trusted}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [cluster],
        "contexts": [context],
        "users": [{"name": "u", "user": user}],
        "current-context": "x",
    }
    path.write_bytes(orjson.dumps(config))
    return str(path)
