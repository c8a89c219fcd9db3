"""What an account of Muster may do is asked once a minute, and what it may not each time."""

from __future__ import annotations

from kube.api.access import Access
from kube.objects.user import User
from webhook import own_rights
from webhook.own_rights import REMEMBERED_SECONDS, OwnRights

MUSTER = User("system:serviceaccount:muster-system:muster-wrapper")
JOBS = Access("create", "batch", "v1", "jobs", "team")


class Cluster:
    def __init__(self) -> None:
        self.now = 0.0
        self.allows = True
        self.asked: list[tuple[User, Access]] = []

    async def is_allowed(self, user: User, access: Access) -> bool:
        self.asked.append((user, access))
        return self.allows

    def rights(self) -> OwnRights:
        return OwnRights(MUSTER, self.is_allowed, lambda: self.now)


async def test_a_right_that_is_held_is_asked_for_once_a_minute() -> None:
    cluster = Cluster()
    rights = cluster.rights()
    for cluster.now in (0.0, 1.0, REMEMBERED_SECONDS - 1):
        assert await rights.holds(JOBS)
    assert cluster.asked == [(MUSTER, JOBS)]
    cluster.now, cluster.allows = REMEMBERED_SECONDS, False
    assert not await rights.holds(JOBS)


async def test_a_right_that_is_granted_is_found_at_once() -> None:
    cluster = Cluster()
    rights, cluster.allows = cluster.rights(), False
    assert not await rights.holds(JOBS)
    cluster.allows = True
    assert await rights.holds(JOBS)


async def test_rights_of_many_namespaces_do_not_add_up_for_ever() -> None:
    cluster = Cluster()
    rights = cluster.rights()
    for number in range(own_rights.MOST + 1):
        await rights.holds(Access("create", "batch", "v1", "jobs", f"team-{number}"))
    assert len(rights._held_until) == 1
