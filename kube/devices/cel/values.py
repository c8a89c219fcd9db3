"""The values of Kubernetes' own types in CEL: quantities and semantic versions."""

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import total_ordering
from typing import Any, Final

from kube.devices.cel.faults import CelError, NotReadable

_QUANTITY: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<digits>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
    r"(?:(?P<binary>[KMGTPE])i|(?P<decimal>[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]+))?"
)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_LONGEST: Final = 40  # beyond it Kubernetes rounds or caps; no device has as much
_LARGEST: Final = 2**63
_NUMBER = r"(?:0|[1-9][0-9]*)"
_SEMVER: Final = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?"
)


class Domains(dict[str, Any]):
    """Maps by domain: an absent domain reads as an empty map, yet is not in it."""


@dataclass(frozen=True, order=True, slots=True)
class Quantity:
    """A quantity, by its exact amount."""

    amount: Fraction

    @property
    def integer(self) -> int | None:
        """Return it as an integer of 64 bits, where it is one that Kubernetes keeps as such."""
        whole = self.amount.denominator == 1 and abs(self.amount) < _LARGEST
        return self.amount.numerator if whole else None


def quantity(text: str) -> Quantity:
    """Read a quantity; what Kubernetes would round or cap is NotReadable."""
    if len(text) > _LONGEST:
        raise NotReadable("quantities of more than 40 characters")
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise CelError("a text is no quantity")
    return Quantity(_exact(match))


def _exact(match: re.Match[str]) -> Fraction:
    exponent = int(match["exponent"] or 0)
    if abs(exponent) > _LONGEST:
        raise NotReadable("quantities beyond 64 bits")
    amount = Fraction(match["digits"].rstrip(".") if match["digits"] != "." else "0")
    if match["binary"]:
        amount *= 1024 ** ("KMGTPE".index(match["binary"]) + 1)
    amount *= Fraction(10) ** (_DECIMAL.get(match["decimal"], 0) + exponent)
    if amount >= _LARGEST or (amount * 10**9).denominator != 1:
        raise NotReadable("quantities beyond 64 bits, or with parts below 1n")
    return -amount if match["sign"] == "-" else amount


@total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """A semantic version; its build part does not count."""

    numbers: tuple[int, int, int]
    before: tuple[str, ...] = ()

    def __lt__(self, other: "Version") -> bool:
        """Order as semantic versions are: one with a pre-release comes before one without."""
        return self._key < other._key

    @property
    def _key(self) -> tuple[object, ...]:
        parts = tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in self.before)
        return self.numbers, not self.before, parts


def version(text: str, relaxed: bool = False) -> Version:  # noqa: FBT001, FBT002 - as in CEL
    """Read a semantic version; a relaxed one may have a v, fewer numbers and leading zeros."""
    match = _SEMVER.fullmatch(_normalized(text) if relaxed else text)
    if match is None or not _parts_hold(match):
        raise CelError("a text is no semantic version")
    numbers = int(match[1]), int(match[2]), int(match[3])
    if max(numbers) >= 2**63:
        raise NotReadable("versions beyond 64 bits")
    return Version(numbers, tuple(match[4].split(".")) if match[4] else ())


def _parts_hold(match: re.Match[str]) -> bool:
    """Say whether no part is empty, and no number of the pre-release begins with 0."""
    before = match[4].split(".") if match[4] else []
    build = match[5].split(".") if match[5] else []
    padded = any(len(p) > 1 and p.isdigit() and p[0] == "0" for p in before)
    return all(before) and all(build) and not padded


def _normalized(text: str) -> str:
    parts = [_without_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3 and ("+" in parts[-1] or "-" in parts[-1]):
        raise CelError("a short version has no pre-release")
    return ".".join(parts + ["0"] * (3 - len(parts)))


def _without_zeros(part: str) -> str:
    if len(part) < 2:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1] in tuple("0123456789") else f"0{stripped}"
