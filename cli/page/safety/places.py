"""Reads which object a path of the page names; what is no name of Kubernetes goes no further."""

import re
from typing import Final

from aiohttp import web

from cli.endings import Unusable

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_LONGEST: Final = 253


def place_of(request: web.Request) -> tuple[str, str]:
    """Return namespace and name, each empty where the path has none; raises Unusable."""
    return _part(request, "namespace"), _part(request, "name")


def _part(request: web.Request, key: str) -> str:
    found = request.match_info.get(key)
    if found is None:
        return ""
    if len(found) > _LONGEST or not _NAME.fullmatch(found):
        raise Unusable(f'{key}: "{found:.80}"; allowed: a-z, 0-9, - and ., as in train-2')
    return found
