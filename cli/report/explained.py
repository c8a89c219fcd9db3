"""Looks up reasons with their cause and remedy."""

from difflib import get_close_matches

import msgspec

from cli.endings import Unusable
from cli.report.reasons import EXPLANATIONS


class ExplainedReason(msgspec.Struct, frozen=True, rename="camel"):
    """One reason."""

    reason: str
    means: str
    remedy: str


class Explained(msgspec.Struct, frozen=True, rename="camel"):
    """Reasons in the order of the documents."""

    reasons: tuple[ExplainedReason, ...]


def explained(asked: str) -> Explained:
    """Return one reason, or all where none is named; raises Unusable for one that there is not."""
    names = {each.value.lower(): each for each in EXPLANATIONS}
    chosen = (
        list(EXPLANATIONS)
        if not asked
        else [names[asked.lower()]]
        if asked.lower() in names
        else []
    )
    if not chosen:
        near = get_close_matches(asked.lower(), names, n=3) or names
        allowed = ", ".join(names[each].value for each in near)
        raise Unusable(f"{asked[:80]}: no reason of Muster; allowed: {allowed}")
    return Explained(tuple(ExplainedReason(each.value, *EXPLANATIONS[each]) for each in chosen))
