"""Counts wrapped objects under the names that ResourceQuotas use."""

from collections import Counter
from collections.abc import Iterator

from appwrapper.spec.wrapped import Wrapped


def counted(wrapped: Wrapped) -> dict[str, int]:
    """Count each object that is no Pod; those of the core by two names.

    The resource is guessed from the kind, as Kubernetes does where it was told of none. Where that
    is wrong the creation is refused, and says so.
    """
    return dict(Counter(_names(wrapped)))


def _names(wrapped: Wrapped) -> Iterator[str]:
    for item in wrapped.items:
        group, kind = item.key[:2]
        if (group, kind) == ("", "Pod"):
            continue
        resource = _plural(kind.lower())
        yield f"count/{resource}.{group}" if group else f"count/{resource}"
        if not group:
            yield resource


def _plural(kind: str) -> str:
    if kind.endswith("y"):
        return f"{kind[:-1]}ies"
    return f"{kind}es" if kind.endswith("s") else f"{kind}s"
