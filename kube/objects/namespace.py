"""Checks the name of a namespace in a setting, before anything is asked of a cluster."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator

ALLOWED: Final = "the name of a namespace: 1 to 63 of a-z, 0-9 and -, the first and the last no -"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def is_namespace(text: str) -> bool:
    """Say whether a namespace may be called so."""
    return _NAME.fullmatch(text) is not None


def _checked(text: str) -> str:
    if not is_namespace(text):
        raise ValueError(f"not valid; allowed: {ALLOWED}")
    return text


NamespaceName = Annotated[str, AfterValidator(_checked)]
"""A setting that is one."""
