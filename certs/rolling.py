"""Rolls over the certificate of a webhook and its authority: a pure state machine.

Each certificate has an authority of its own, of which the key is forgotten as soon as it has
signed: no key that can sign lies about in the cluster, and every renewal rolls the authority over,
so that this is tried every two months and not once in ten years. The order keeps calls from
failing: the new authority goes into every caBundle, API servers get time to hear of it, the new
certificate is served, replicas get time to read it, and only then the old authority is taken away.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from certs.chain import (
    LEAF_LIFETIME,
    Pair,
    ServerNames,
    expires_at,
    is_named,
    issue_leaf,
    needs_renewal,
    new_authority,
    renewal_at,
    serves,
    starts_at,
)
from certs.held import Held, anchor_of
from certs.plan import Plan, Step
from kube.objects.names import CONFIGURATION_HEARD as HEARD

READ = timedelta(hours=1)
"""After so long every replica serves the certificate of the Secret. The kubelet brings it to
volumes within two minutes, and programs look every 2 s; more costs nothing, for the key of the old
authority is gone, and all that it vouches for is the certificate before."""

MOST_AUTHORITIES = 4
"""Old, new, and two more: a roll-over that is begun again and again must not fill the bundle."""

LAST = timedelta(days=1)
"""So long before its end a certificate is replaced although a configuration that cannot be written
lacks the new authority. What that one asks for would fail a day later in any case; until then there
are 29 days in which it may be put right, and the others are never without."""

Bundle = tuple[bytes, ...]
"""What a webhook of a configuration trusts, each a PEM certificate."""


@dataclass(frozen=True, slots=True)
class Withheld:
    """Configurations that cannot be written now."""

    bundles: tuple[Bundle, ...] = ()
    """What their webhooks trust, as far as it could be read."""
    unread: bool = False
    """Whether there are some of which nothing is known."""


NOTHING = Withheld()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the certificates are for."""

    authority: str
    """The name of our authorities; another name is of others, and left alone."""
    names: ServerNames
    """By which the server is called."""


# ---- what is next


def next_step(
    held: Held | None,
    bundles: Sequence[Bundle],
    wanted: Wanted,
    now: datetime,
    withheld: Withheld = NOTHING,
) -> Plan:
    """Return what is to be done, given the Secret and what each webhook trusts.

    `bundles` are those that can be written; what is withheld holds up a switch, and nothing else.
    """
    if held is None:
        return Plan(Step.CREATE, "there is no Secret")
    if not held.ours:
        return _of_others(held, bundles)
    fault = served_fault(held, now)
    if fault:
        lost = _lost_anchor(held, (*bundles, *withheld.bundles))
        return Plan(Step.REPLACE if lost is None else Step.RECOVER, fault)
    if _is_under_way(held):
        return _under_way(held, bundles, wanted, now, withheld)
    due = _due(held, wanted, now)
    return Plan(Step.ANNOUNCE, due) if due else _settled(held, bundles, wanted, now)


def served_fault(held: Held, now: datetime) -> str:
    """Say why no caller accepts what is served; empty where they do."""
    if held.served is None:
        return "; ".join(held.faults) or "tls.crt is missing"
    if held.anchor is None:
        return "ca.crt did not sign tls.crt"
    chain = held.served.certificate
    if now < starts_at(chain):
        return f"tls.crt is not valid before {starts_at(chain):%Y-%m-%d %H:%M} UTC"
    end = min(expires_at(chain), expires_at(held.anchor))
    return f"tls.crt has expired on {end:%Y-%m-%d %H:%M} UTC" if now >= end else ""


def _due(held: Held, wanted: Wanted, now: datetime) -> str:
    """Say why what is served, and accepted, is to be replaced."""
    assert held.served is not None
    chain = held.served.certificate
    if not serves(chain, wanted.names):
        return f"tls.crt is not for {wanted.names}"
    return f"tls.crt ends on {expires_at(chain):%Y-%m-%d}" if needs_renewal(chain, now) else ""


def _is_under_way(held: Held) -> bool:
    return held.following is not None or any(each.startswith("next.") for each in held.faults)


def _under_way(
    held: Held, bundles: Sequence[Bundle], wanted: Wanted, now: datetime, withheld: Withheld
) -> Plan:
    """Go on with a roll-over: all trust the new authority, they have had time, it is served."""
    if not _can_follow(held, wanted, now):
        return Plan(Step.ANNOUNCE, "what was to be served next is of no use any more")
    if _stale(held, bundles, wanted):
        doubted = held.trusted_since is not None
        return Plan(Step.DOUBT if doubted else Step.INJECT, "caBundle lacks the new authority")
    last = _last_moment(held)
    if now < last and (withheld.unread or _stale(held, withheld.bundles, wanted)):
        why = "until a configuration that cannot be written has the new authority"
        return Plan(Step.WAIT, why, last)
    return _trusted(held, now)


def _last_moment(held: Held) -> datetime:
    """Return until when a switch may wait for configurations that cannot be written."""
    assert held.served is not None
    assert held.anchor is not None
    return min(expires_at(held.served.certificate), expires_at(held.anchor)) - LAST


def _trusted(held: Held, now: datetime) -> Plan:
    """Switch once API servers have had time."""
    since = held.trusted_since
    if since is None or since > now:
        return Plan(Step.TRUST, "every caBundle has the new authority")
    if now < since + HEARD:
        return Plan(Step.WAIT, "until every API server has heard of it", since + HEARD)
    return Plan(Step.SWITCH, f"every caBundle has had the new authority since {since:%H:%M:%S}")


def _can_follow(held: Held, wanted: Wanted, now: datetime) -> bool:
    if held.following is None or anchor_of(held.following, held.authorities) is None:
        return False
    chain = held.following.certificate
    return serves(chain, wanted.names) and not needs_renewal(chain, now)


def _settled(held: Held, bundles: Sequence[Bundle], wanted: Wanted, now: datetime) -> Plan:
    """Bring a roll-over to its end, then wait for the next."""
    assert held.served is not None
    if _stale(held, bundles, wanted):
        return Plan(Step.INJECT, "caBundle is not what the Secret says")
    if held.authorities == (held.anchor,):
        return Plan(Step.WAIT, "until the next renewal", renewal_at(held.served.certificate))
    since = held.served_since
    if since is None or since > now:
        return Plan(Step.SETTLE, "the new certificate is served")
    if now < since + READ:
        return Plan(Step.WAIT, "until every replica serves the new certificate", since + READ)
    return Plan(Step.DROP, f"the new certificate has been served since {since:%Y-%m-%d %H:%M}")


def _of_others(held: Held, bundles: Sequence[Bundle]) -> Plan:
    """Make the authority of another's Secret known, and touch nothing else."""
    if held.served is None or held.anchor is None:
        fault = "; ".join(held.faults) or "ca.crt did not sign tls.crt, or is missing"
        return Plan(Step.BLOCKED, f"{held.theirs}, and of no use: {fault}")
    if any({*bundle} != {*trusting(bundle, held, None)} for bundle in bundles):
        return Plan(Step.INJECT, "caBundle lacks the authority of the Secret")
    end = expires_at(held.served.certificate)
    return Plan(Step.WAIT, f"{held.theirs}: who made it renews it", end)


# ---- what callers trust


def trusting(bundle: Bundle, held: Held, ours: str | None) -> Bundle:
    """Return what a webhook should trust: what others put there, and the authorities held.

    Ours that are not held any more are taken away; without a name of ours nothing is.
    """
    kept = [each for each in bundle if each not in held.authorities]
    theirs = [each for each in kept if ours is None or not is_named(each, ours)]
    held_already = [each for each in bundle if each in held.authorities]
    added = [each for each in held.authorities if each not in bundle]
    return tuple(dict.fromkeys((*theirs, *held_already, *added)))


def foreign(bundle: Bundle, held: Held, ours: str) -> int:
    """Count what others have put into a bundle."""
    return sum(each not in held.authorities and not is_named(each, ours) for each in bundle)


def _stale(held: Held, bundles: Sequence[Bundle], wanted: Wanted) -> bool:
    return any({*each} != {*trusting(each, held, wanted.authority)} for each in bundles)


def _lost_anchor(held: Held, bundles: Iterable[Bundle]) -> bytes | None:
    """Return the authority of what is served that the Secret lacks, where a webhook has it."""
    if held.served is None or held.anchor is not None:
        return None
    return anchor_of(held.served, tuple(each for bundle in bundles for each in bundle))


# ---- what a step changes


def changed(
    step: Step, held: Held | None, bundles: Sequence[Bundle], wanted: Wanted, now: datetime
) -> Held:
    """Return what the Secret holds after a step that writes it."""
    before = held or Held()
    if step in (Step.CREATE, Step.REPLACE):
        before = replace(before, authorities=_trusted_before(before, bundles, wanted))
        authority, leaf = _issued(wanted, now)
        known = _known(before, authority, now)
        return replace(
            before,
            authorities=known,
            served=leaf,
            following=None,
            trusted_since=None,
            served_since=now,
        )
    if step is Step.ANNOUNCE:
        authority, leaf = _issued(wanted, now)
        known = _known(before, authority, now)
        return replace(before, authorities=known, following=leaf, trusted_since=None)
    return _noted(step, before, bundles, now)


def _noted(step: Step, held: Held, bundles: Sequence[Bundle], now: datetime) -> Held:
    """Return what the Secret holds after a step that makes nothing."""
    match step:
        case Step.TRUST:
            return replace(held, trusted_since=now)
        case Step.DOUBT:
            return replace(held, trusted_since=None)
        case Step.SWITCH:
            moved = replace(held, served=held.following, following=None)
            return replace(moved, trusted_since=None, served_since=now)
        case Step.SETTLE:
            return replace(held, served_since=now)
        case Step.DROP:
            assert held.anchor is not None
            return replace(held, authorities=(held.anchor,))
        case Step.RECOVER:
            lost = _lost_anchor(held, bundles)
            assert lost is not None
            return replace(held, authorities=(lost, *held.authorities))
    raise AssertionError(step)


def _issued(wanted: Wanted, now: datetime) -> tuple[bytes, Pair]:
    """Make an authority and what it signs; its key is forgotten here."""
    authority = new_authority(wanted.authority, now, LEAF_LIFETIME)
    return authority.certificate, issue_leaf(authority, wanted.names, now)


def _known(held: Held, new: bytes, now: datetime) -> tuple[bytes, ...]:
    """Return the authorities with a new one: those in use are kept, those that ended are not."""
    living = [each for each in held.authorities if now < expires_at(each)]
    used = [each for each in living if each == held.anchor]
    others = [each for each in living if each != held.anchor]
    return (*used, *others[-(MOST_AUTHORITIES - 2) :], new)


def _trusted_before(held: Held, bundles: Iterable[Bundle], wanted: Wanted) -> tuple[bytes, ...]:
    """Return our authorities of before, wherever they are left.

    Replicas may still serve what the Secret held before it was deleted or damaged.
    """
    found = (each for bundle in bundles for each in bundle if is_named(each, wanted.authority))
    return tuple(dict.fromkeys((*found, *held.authorities)))
