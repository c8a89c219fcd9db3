"""What does a scene have to show, and did it?"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """Something that a scene has to show, and whether it did."""

    text: str
    holds: bool = True
    """True as it stands for what a scene does not get past without."""
