"""Names a kind of object as paths name it."""

from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of object, as paths name it."""

    group: str
    version: str
    plural: str
    namespaced: bool = True

    def path(
        self, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> str:
        """Return the path of an object, or of the collection when there is no name."""
        assert self.namespaced or namespace is None, f"{self.plural} live in no namespace"
        assert name is None or (namespace is not None) == self.namespaced, "a name needs its place"
        base = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        place = f"/namespaces/{quote(namespace, safe='')}" if namespace is not None else ""
        tail = "".join(f"/{quote(part, safe='')}" for part in (name, subresource) if part)
        return f"{base}{place}/{self.plural}{tail}"
