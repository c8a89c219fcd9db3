"""Defines the steps in which certificates are made and replaced, and the outcome of a check."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Step(StrEnum):
    """One step: one write to one object, after which all objects are read anew."""

    CREATE = "create"
    """There is no Secret: make one."""
    RECOVER = "recover"
    """The Secret lacks the authority of what is served, and a configuration still has it."""
    REPLACE = "replace"
    """What is served is of no use to any caller: serve another one at once."""
    ANNOUNCE = "announce"
    """Put a new authority beside the old one, and what is served next aside."""
    INJECT = "inject"
    """Give a configuration the authorities of the Secret."""
    DOUBT = "doubt"
    """A configuration lost an authority: the wait begins anew once it is there again."""
    TRUST = "trust"
    """All configurations have all authorities: note since when."""
    SWITCH = "switch"
    """Serve what was put aside."""
    SETTLE = "settle"
    """Note since when the new certificate is served."""
    DROP = "drop"
    """Take away authorities that nothing is served of any more."""
    RENEW = "renew"
    """Serve a new certificate of an authority that callers trust."""
    SUCCEED = "succeed"
    """Put the next standing authority beside the one that ends."""
    HAND_OUT = "hand-out"
    """Make the callers' certificate anew."""
    BLOCKED = "blocked"
    """Nothing can be done here: others must act."""
    WAIT = "wait"
    """Nothing is to be done until a time."""


ISSUING = frozenset(
    {Step.CREATE, Step.REPLACE, Step.ANNOUNCE, Step.RENEW, Step.SUCCEED, Step.HAND_OUT}
)
"""Steps that make certificates."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done next, and why; a wait has an end, but for one that others must end."""

    step: Step
    why: str
    until: datetime | None = None
