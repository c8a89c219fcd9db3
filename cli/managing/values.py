"""Checks single values; a bad value raises Unusable with its field and what is allowed."""

import re
from typing import Any, Final

from cli.endings import Unusable
from scheduling.model.quantity import BadQuantity, request_amount

LONGEST_CLUSTER: Final = 53
"""Characters of the name of a RayCluster: KubeRay makes names of Services and pods of it."""

LONGEST_JOB: Final = 47
"""Characters of the name of a RayJob: KubeRay adds six for its RayCluster."""

MOST_REPLICAS: Final = 2**31 - 1

_NAME: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_QUEUE: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_LONGEST_QUEUE: Final = 63


def check_name(field: str, name: str, longest: int = LONGEST_CLUSTER) -> str:
    """Return a name that KubeRay takes."""
    if not _NAME.fullmatch(name) or len(name) > longest:
        raise Unusable(
            f'{field}: "{name:.80}"; allowed: at most {longest} characters of a-z, 0-9 and -, '
            "beginning with a letter, ending with a letter or digit"
        )
    return name


def check_queue(field: str, name: str) -> str:
    """Return a name that a GangQueue can have, and a label can hold."""
    if not _QUEUE.fullmatch(name) or len(name) > _LONGEST_QUEUE:
        raise Unusable(
            f'{field}: "{name:.80}"; allowed: at most {_LONGEST_QUEUE} characters of a-z, 0-9, - '
            "and ., beginning and ending with a letter or digit"
        )
    return name


def check_count(field: str, value: object, least: int = 0) -> int:
    """Return a whole number, given as such or as text."""
    text = str(value)
    if not re.fullmatch(r"[0-9]{1,10}", text) or not least <= int(text) <= MOST_REPLICAS:
        raise Unusable(f'{field}: "{text:.80}"; allowed: a whole number from {least}')
    return int(text)


def check_amount(field: str, resource: str, value: str) -> str:
    """Return a quantity of a resource as it was written."""
    try:
        request_amount(resource, value)
    except BadQuantity:
        raise Unusable(f'{field}: "{value:.80}"; allowed: a quantity such as 16 or 64Gi') from None
    return value


def check_one_of(field: str, value: str, allowed: tuple[str, ...]) -> str:
    """Return a value that is one of some."""
    if value not in allowed:
        raise Unusable(f'{field}: "{value:.80}"; allowed: {", ".join(allowed)}')
    return value


def part(body: Any, *path: str) -> dict[str, Any]:
    """Return an object inside an object; an empty one where there is none."""
    for key in path:
        body = body.get(key) if isinstance(body, dict) else None
    return body if isinstance(body, dict) else {}
