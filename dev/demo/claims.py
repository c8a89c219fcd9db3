"""What a scene has to show, and whether it did."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """Something that a scene has to show, and whether it did."""

    text: str
    holds: bool = True
    """True as it stands for what a scene does not get past without."""
