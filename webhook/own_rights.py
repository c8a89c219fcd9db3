"""Remembers for a minute which rights an account of Muster holds.

All AppWrappers need the same few rights, and these change when an operator changes a ClusterRole.
If a right was taken away meanwhile, the creation of the object fails later, with the reason.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Final

from kube.api.access import Access
from kube.objects.user import User

REMEMBERED_SECONDS: Final = 60.0
MOST: Final = 5_000
"""Rights that are remembered at one time, each of a kind and a namespace."""


class OwnRights:
    """The rights of one account, asked of the API server and remembered where they are held."""

    def __init__(
        self,
        account: User,
        is_allowed: Callable[[User, Access], Awaitable[bool]],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._account = account
        self._is_allowed = is_allowed
        self._now = now
        self._held_until: dict[Access, float] = {}

    async def holds(self, access: Access) -> bool:
        """Say whether the account holds a right. What it lacks may be granted any moment."""
        if self._now() < self._held_until.get(access, 0.0):
            return True
        held = await self._is_allowed(self._account, access)
        if held:
            self._remember(access)
        return held

    def _remember(self, access: Access) -> None:
        if len(self._held_until) >= MOST:
            self._held_until.clear()
        self._held_until[access] = self._now() + REMEMBERED_SECONDS
