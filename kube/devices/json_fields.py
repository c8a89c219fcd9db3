"""Reads fields of plain JSON whose values may be anything, and notes what cannot be read."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kube.codec.fields import shortened

MOST_PROBLEMS: Final = 8
"""So many are kept for one object: enough to act on."""


class Problems:
    """What of an object cannot be read, or is not modelled; sorted, without repetition."""

    def __init__(self) -> None:
        self._found: set[str] = set()

    def note(self, problem: str) -> None:
        """Add one."""
        if len(self._found) < MOST_PROBLEMS:
            self._found.add(shortened(problem))

    def __bool__(self) -> bool:
        """Say whether there are any."""
        return bool(self._found)

    @property
    def all(self) -> tuple[str, ...]:
        """Return all of them."""
        return tuple(sorted(self._found))


class Fields:
    """The fields of one JSON object; a value of the wrong type is noted and reads as absent."""

    def __init__(self, value: Any, path: str, problems: Problems) -> None:
        self.path = path
        self.problems = problems
        self._of: Mapping[str, Any] = value if isinstance(value, dict) else {}
        if value is not None and not isinstance(value, dict):
            self._refuse("", value, "an object")

    def __contains__(self, key: str) -> bool:
        """Say whether a field is set: neither absent nor null."""
        return self._of.get(key) is not None

    def text(self, key: str, default: str = "") -> str:
        """Read a string."""
        value = self._of.get(key)
        if isinstance(value, str):
            return value
        return default if value is None else self._refuse(key, value, "a string", default)

    def number(self, key: str, default: int) -> int:
        """Read an integer of 64 bits."""
        value = self._of.get(key)
        if type(value) is int and abs(value) < 2**63:
            return value
        return default if value is None else self._refuse(key, value, "an integer", default)

    def flag(self, key: str) -> bool:
        """Read true or false; absent is false."""
        value = self._of.get(key)
        if isinstance(value, bool):
            return value
        return value is not None and bool(self._refuse(key, value, "true or false"))

    def part(self, key: str) -> "Fields":
        """Read an object."""
        return Fields(self._of.get(key), self._at(key), self.problems)

    def parts(self, key: str) -> Iterator["Fields"]:
        """Read a list of objects."""
        for number, value in enumerate(self._list(key)):
            yield Fields(value, f"{self._at(key)}[{number}]", self.problems)

    def texts(self, key: str) -> tuple[str, ...]:
        """Read a list of strings."""
        found = self._list(key)
        if not all(isinstance(each, str) for each in found):
            self._refuse(key, found, "strings")
            return ()
        return tuple(found)

    def named(self, key: str) -> Iterator[tuple[str, Any]]:
        """Read a map, sorted by name."""
        value = self._of.get(key)
        if value is not None and not isinstance(value, dict):
            value = self._refuse(key, value, "a map", {})
        return iter(sorted((value or {}).items()))

    @property
    def whole(self) -> Mapping[str, Any]:
        """Return the object."""
        return self._of

    def plain(self, key: str) -> Any:
        """Return a value as it is."""
        return self._of.get(key)

    def unknown(self, *known: str) -> None:
        """Note the fields that are set and not among these: a newer version means something."""
        for key in self._of:
            if key not in known and key in self:
                self.problems.note(f"{self._at(key)} is not known")

    def _list(self, key: str) -> list[Any]:
        value = self._of.get(key)
        if isinstance(value, list):
            return value
        if value is not None:
            self._refuse(key, value, "a list")
        return []

    def _at(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path and key else self.path or key

    def _refuse(self, key: str, value: Any, allowed: str, default: Any = None) -> Any:
        said = shortened(str(value)[:200])
        self.problems.note(f'{self._at(key)}: "{said}" is not valid; allowed: {allowed}')
        return default
