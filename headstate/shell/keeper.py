"""Compares servers and RayClusters again and again, and makes the changes that are missing.

One look writes users on all servers, then Secrets, then Events; it removes users and keys of
RayClusters that are gone, and writes the primary into the Service. It remembers nothing that
another leader could not find out. What Redis or the API server refuses is left to the next look.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Final

import structlog

from headstate.metrics import Metrics
from headstate.plan import (
    Head,
    ServerState,
    Written,
    is_missing,
    is_replaced,
    left_over,
    over_limit,
    primary_of,
    report_of,
    suffices,
)
from headstate.settings import Settings
from headstate.shell.cluster import Cluster
from headstate.shell.keys import Keys, NoKeys, read_keys
from headstate.shell.servers import FAULTS, Seen, Servers
from headstate.users import (
    COMMANDS,
    WITHOUT_GROWTH,
    digests_of,
    lacking_names,
    lacking_rules,
    password_of,
    rule_of,
    uid_of_key,
)
from kube.api.errors import KubeError

log = structlog.get_logger(__name__)

SECRETS_AT_ONE_LOOK: Final = 500
AGAIN: Final = 30.0
"""Seconds until a Secret that was refused is tried again, and until an Event is written anew."""
CHECKED_AGAIN: Final = 600.0
"""Seconds until a Secret that was written is looked for again while its head is not up."""
REPORT_EVERY: Final = 15.0
SERVICE_EVERY: Final = 60.0
SERVICE_AGAIN: Final = 2.0

USER_READY: Final = "RedisUserReady"
UNAVAILABLE: Final = "RedisUnavailable"
OVER_LIMIT: Final = "RedisLimitReached"


class Keeper:
    """Does the work of one leader."""

    def __init__(
        self,
        settings: Settings,
        servers: Servers,
        cluster: Cluster,
        heads: Callable[[], Iterable[Head]],
        refresh: Callable[[], Awaitable[None]],
        metrics: Metrics,
    ) -> None:
        self._settings = settings
        self._servers = servers
        self._cluster = cluster
        self._heads = heads
        self._refresh = refresh
        self._metrics = metrics
        self._written: dict[str, Written] = {}
        self._next: dict[object, float] = {}
        """When what is not done at each look is due."""
        self._wanted: tuple[tuple[bytes, ...], frozenset[str]] = ((), frozenset())
        """Of which keys, and for which RayClusters over the limit, rules were compared."""
        self._compared: set[str] = set()
        """Servers of which all rules were compared with that, and that have answered since."""
        self._used: dict[str, int] = {}
        self._stray: set[str] = set()
        """Keys without a RayCluster, by uid, as of the last walk."""
        self._primary: str | None = None
        self._pointed: tuple[str, int] | None = None
        self._passwords: tuple[str, ...] = ()
        """Those that all servers and Sentinels are known to take."""

    async def run(self, looked: Callable[[], None]) -> None:
        """Look for ever, and say so after each look that could be made."""
        while True:
            try:
                await self.look()
                looked()
            except NoKeys as error:
                log.error("no key", reason=str(error))
            await asyncio.sleep(self._settings.look_seconds)

    async def look(self) -> None:
        """Look once; raises NoKeys."""
        settings = self._settings
        keys = read_keys(Path(settings.key_directory))
        self._servers.use(keys.administrators)
        named, seen = await asyncio.gather(
            self._servers.primaries(), self._servers.look(at_rules=self._not_compared(keys))
        )
        self._primary = primary_of(named, len(settings.sentinels))
        states = _states(seen)
        self._metrics.tell_servers(states, self._primary)
        answering = {name: each for name, each in seen.items() if each is not None}
        if self._primary in answering and self._is_due("survey", settings.survey_seconds):
            await self._survey(self._primary)
        heads = self._mine()
        await self._set_users(heads, answering, keys)
        await self._set_passwords(keys)
        if suffices(answering, len(settings.servers), self._primary):
            await self._write_secrets(heads, keys)
            await self._clear(answering)
        else:
            await self._tell_of_outage(len(answering))
        self._count()
        await self._point()
        if self._is_due("report", REPORT_EVERY):
            await self._report(seen, keys)

    # ---- users

    def _not_compared(self, keys: Keys) -> list[str]:
        """Name the servers of which all rules are to be compared.

        All of them from time to time, and where what is wanted is another; one that was away.
        """
        wanted = (keys.users, over_limit(self._used, self._settings.limit_bytes))
        if self._is_due("rules", self._settings.rules_seconds) or wanted != self._wanted:
            self._compared.clear()
        if wanted[0] != self._wanted[0]:  # all Secrets are due
            self._next = {what: at for what, at in self._next.items() if isinstance(what, str)}
        self._wanted = wanted
        return [name for name in self._settings.servers if name not in self._compared]

    def _mine(self) -> dict[str, Head]:
        return {each.uid: each for each in self._heads() if each.secret is not None}

    async def _set_users(
        self, wanted: Collection[str], answering: dict[str, Seen], keys: Keys
    ) -> None:
        """Set what each server lacks; one that fails at it counts as one that does not answer."""
        rules = _Rules(keys, self._wanted[1])
        self._compared &= {*answering}
        for name, seen in [*answering.items()]:
            if seen.rules is None:
                lacking = lacking_names(seen.users, wanted)
            else:
                lacking = lacking_rules(seen.rules, {uid: rules.of(uid) for uid in wanted})
            if lacking and not await self._set(name, {uid: rules.of(uid) for uid in lacking}):
                del answering[name]
            elif seen.rules is not None:
                self._compared.add(name)

    async def _set(self, name: str, rules: Mapping[str, tuple[str, ...]]) -> bool:
        done = await self._tried(name, self._servers.set_users(name, rules))
        self._metrics.count("user", done=done, times=len(rules))
        return done

    async def _set_passwords(self, keys: Keys) -> None:
        """Give Muster's own users the present passwords; they start with the former ones."""
        if self._passwords == keys.administrators:
            return
        if self._is_due("passwords", AGAIN):
            every = self._servers.set_passwords(keys.administrators)
            if await self._tried("all of them", every):
                self._passwords = keys.administrators

    # ---- Secrets

    async def _write_secrets(self, heads: Mapping[str, Head], keys: Keys) -> None:
        """Write missing Secrets of heads that have users by now, some at one look.

        A RayCluster that came while users were set has none yet: the next look does it.
        """
        due = (
            head
            for head in self._missing(heads, keys.users[0])
            if self._is_due(("secret", head.uid), self._pause(head))
        )
        free = asyncio.Semaphore(self._settings.concurrency)
        some = [*islice(due, SECRETS_AT_ONE_LOOK)]
        await asyncio.gather(*(self._write_secret(each, keys, free) for each in some))

    def _missing(self, heads: Mapping[str, Head], key: bytes) -> list[Head]:
        before = self._written
        self._written = {uid: told for uid, told in before.items() if uid in heads}
        return [each for uid, each in heads.items() if is_missing(each, key, before.get(uid))]

    def _pause(self, head: Head) -> float:
        return CHECKED_AGAIN if head.uid in self._written else AGAIN

    async def _write_secret(self, head: Head, keys: Keys, free: asyncio.Semaphore) -> None:
        before, key = self._written.get(head.uid), keys.users[0]
        replaced = is_replaced(head, key, before, rotating=keys.rotating)
        password = password_of(key, head.uid)
        async with free:
            outcome = await self._cluster.write_secret(head, password, replaced=replaced)
            if outcome == "failed":
                self._next[("secret", head.uid)] = time.monotonic() + AGAIN
                return
            made = outcome == "made" or (before is not None and before.made)
            self._written[head.uid] = Written(head.secret or "", key, made)
            if outcome == "made":
                said = f"its head may use the built-in Redis, with what is in Secret {head.secret}"
                await self._cluster.tell(head, USER_READY, said, warning=False)

    # ---- what is left over

    async def _clear(self, answering: Mapping[str, Seen]) -> None:
        """Delete users and keys without a RayCluster, as a list says that is newer than they are.

        First their rights, so that nothing is written any more; the user last, for it tells the
        next leader that something is left.
        """
        users = {user for seen in answering.values() for user in seen.users}
        stray = (f"RAY{uid}@" for uid in self._stray)
        if not left_over(users, stray, self._alive()):
            return
        try:
            await self._refresh()
        except KubeError as error:
            log.warning("nothing is deleted: no new list", error=str(error))
            return
        stray = (f"RAY{uid}@" for uid in self._stray)
        uids = left_over(users, stray, self._alive())
        if uids and self._primary is not None:
            done = await self._tried(self._primary, self._delete(uids, answering, self._primary))
            self._metrics.count("removal", done=done, times=len(uids))

    async def _delete(
        self, uids: Collection[str], answering: Mapping[str, Seen], primary: str
    ) -> None:
        await asyncio.gather(*(self._servers.close_users(name, uids) for name in answering))
        deleted = await self._servers.delete_keys(primary, uids)
        await asyncio.gather(*(self._servers.delete_users(name, uids) for name in answering))
        self._stray.difference_update(uids)
        log.info("deleted what was left", clusters=len(uids), keys=deleted)

    def _alive(self) -> set[str]:
        return {each.uid for each in self._heads()}

    async def _survey(self, primary: str) -> None:
        """Walk over all keys: what each RayCluster takes, and what is left over."""
        used: dict[str, int] = {}
        try:
            async for keys in self._servers.keys(primary):
                sizes = await self._servers.sizes(primary, keys)
                for key, size in zip(keys, sizes, strict=True):
                    uid = uid_of_key(key)
                    if uid is not None:
                        used[uid] = used.get(uid, 0) + size
        except FAULTS as error:
            log.warning("no survey", server=primary, error=str(error))
            return
        before = over_limit(self._used, self._settings.limit_bytes)
        self._used, self._stray = used, {*used} - self._alive()
        over = over_limit(used, self._settings.limit_bytes)
        self._metrics.largest.set(max(used.values(), default=0))
        self._metrics.over_limit.set(len(over))
        await self._tell_of_limit(over - before)

    # ---- what is told

    async def _tell_of_limit(self, uids: Collection[str]) -> None:
        heads, most = self._mine(), self._settings.limit_bytes
        for uid in uids:
            if uid in heads:
                said = (
                    f"its state takes {self._used[uid]} bytes of the built-in Redis and may not "
                    f"grow any more; allowed: {most}. Its head ends when it has to write"
                )
                await self._cluster.tell(heads[uid], OVER_LIMIT, said, warning=True)

    async def _tell_of_outage(self, answering: int) -> None:
        """Tell those that wait for Redis: heads that have no Secret, and what is being deleted."""
        total = len(self._settings.servers)
        who = "no primary" if self._primary is None else f"primary {self._primary}"
        state = f"{answering} of {total} servers of the built-in Redis answer, {who}"
        for head in self._mine().values():
            if head.ends:
                said = "KubeRay ends its deletion within 5 minutes; Muster deletes its state later"
            elif head.uid not in self._written and not head.ready:
                said = "its head waits; needed are more than half of them, the primary included"
            else:
                continue
            if self._is_due(("outage", head.uid), AGAIN):
                await self._cluster.tell(head, UNAVAILABLE, f"{state}: {said}", warning=True)

    async def _point(self) -> None:
        """Keep the Service at the primary; its pod may come back with another address."""
        if self._primary is None:
            return
        address = await self._cluster.address_of(self._primary)
        if address is None:
            return
        there = (address, int(self._primary.rpartition(":")[2]))
        pause = SERVICE_EVERY if there == self._pointed else SERVICE_AGAIN
        if self._is_due(f"service {there}", pause):
            self._pointed = there if await self._cluster.point_to(*there) else None

    async def _report(self, seen: Mapping[str, Seen | None], keys: Keys) -> None:
        heads = self._mine()
        newest = (uid for uid, told in self._written.items() if told.key == keys.users[0])
        counts = (sum(1 for _ in newest), len(heads))
        report = report_of(_states(seen), self._primary, heads, self._used, counts)
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._next = {
            what: at
            for what, at in self._next.items()
            if not isinstance(what, tuple) or what[1] in heads
        }
        await self._cluster.publish({"at": now, "keys": self._taken(keys), **report})

    # ---- small things

    def _taken(self, keys: Keys) -> int:
        """Return how many keys are in use; one until all servers take the second password too."""
        both = len(keys.administrators) == len(keys.users)
        return len(keys.users) if both and self._passwords == keys.administrators else 1

    def _count(self) -> None:
        heads = self._mine()
        waiting = sum(uid not in self._written and not head.ends for uid, head in heads.items())
        self._metrics.clusters.set(len(heads))
        self._metrics.waiting.set(waiting)

    def _is_due(self, what: object, every: float) -> bool:
        now = time.monotonic()
        if now < self._next.get(what, 0.0):
            return False
        self._next[what] = now + every
        return True

    async def _tried(self, name: str, work: Awaitable[object]) -> bool:
        try:
            await work
        except FAULTS as error:
            log.warning("not done", server=name, error=str(error))
            return False
        return True


class _Rules:
    """The rules of users, each worked out when it is asked for."""

    def __init__(self, keys: Keys, over: Collection[str]) -> None:
        self._keys = keys
        self._over = over

    def of(self, uid: str) -> tuple[str, ...]:
        commands = WITHOUT_GROWTH if uid in self._over else COMMANDS
        return rule_of(uid, digests_of(self._keys.users, uid), commands)


def _states(seen: Mapping[str, Seen | None]) -> dict[str, ServerState | None]:
    return {name: None if each is None else each.state for name, each in seen.items()}
