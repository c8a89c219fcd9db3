"""Replaces the certificates of the extender when they are due: a pure state machine.

kube-scheduler reads the authority of the extender once, when it starts. So this authority stands
for ten years and its key is kept: server certificates are renewed below it, and no kube-scheduler
notices. Two years before its end the next authority is added to ca.crt, and signs a certificate for
the scheduler. From then on each kube-scheduler that is started with the new files trusts both. The
server goes over to the next authority as late as it can.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from certs.chain import (
    CA_LIFETIME,
    CertificateError,
    Pair,
    ServerNames,
    can_sign,
    expires_at,
    is_named,
    issue_client,
    issue_leaf,
    needs_renewal,
    new_authority,
    renewal_at,
    serves,
    starts_at,
)
from certs.held import Held, anchor_of
from certs.plan import Plan, Step

OVERLAP = timedelta(days=730)
"""So long before its end an authority has its successor beside it. Within that time every
kube-scheduler is started anew: a minor version of Kubernetes is maintained for 14 months."""

LAST = timedelta(days=1)
"""So long before its end the last certificate of an authority is replaced by one of the next. That
is as late as it can be, for a kube-scheduler that was not started anew loses the extender then; but
there is a day in which a muster-certs that is down can be put right."""

LOADED = timedelta(hours=1)
"""After so long every extender accepts callers of a new authority; see READ of the webhook's."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the certificates are for."""

    authority: str
    """The name of our authorities."""
    names: ServerNames
    """By which the server is called."""
    client: str = ""
    """The name in the callers' certificate."""


# ---- what is next


def next_step(held: Held | None, wanted: Wanted, now: datetime) -> Plan:
    """Return what is to be done, given the Secret."""
    if held is None:
        return Plan(Step.CREATE, "there is no Secret")
    if not held.ours:
        return _of_others(held, now)
    signer = signer_of(held)
    ended = _succession_due(signer, now)
    if ended or signer is None:
        return Plan(Step.SUCCEED, ended)
    for step, why in (_server_due(held, signer, wanted, now), _client_due(held, wanted, now)):
        if step is not Step.WAIT:
            return Plan(step, why)
    if any(now >= expires_at(each) for each in held.authorities):
        return Plan(Step.DROP, "an authority has ended")
    return _waiting(held, signer, wanted, now)


def _waiting(held: Held, signer: Pair, wanted: Wanted, now: datetime) -> Plan:
    """Wait; other names have to wait too while the server's authority has no key any more."""
    assert held.served is not None
    until = _next_time(held, signer, now)
    if serves(held.served.certificate, wanted.names):
        return Plan(Step.WAIT, "until the next renewal", until)
    why = (
        f"tls.crt is not for {wanted.names}, and its authority, which has a successor, signs no"
        f" more until {_moves_at(held):%Y-%m-%d}: go back to the names before; or start each"
        " kube-scheduler with the files of the Secret, and then empty its tls.crt and tls.key"
    )
    return Plan(Step.BLOCKED, why, until)


def signer_of(held: Held) -> Pair | None:
    """Return the authority that signs what is made from now on."""
    for authority in reversed(held.authorities):
        pair = Pair(authority, held.authority_key or b"")
        try:
            if can_sign(pair):
                return pair
        except CertificateError:
            return None  # the key cannot be read, whichever the authority
    return None


def restart_by(held: Held) -> datetime | None:
    """Return when a kube-scheduler that was not started with the new files loses the extender.

    None where there is nothing to be done: what is served is of the newest authority.
    """
    signer = signer_of(held)
    if signer is None or held.served is None or held.anchor in (None, signer.certificate):
        return None
    return _moves_at(held)


def _succession_due(signer: Pair | None, now: datetime) -> str:
    if signer is None:
        return "no authority has its key"
    begin, end = starts_at(signer.certificate), expires_at(signer.certificate)
    if now < begin:
        return f"the authority is not valid before {begin:%Y-%m-%d %H:%M} UTC"
    return f"the authority ends on {end:%Y-%m-%d}" if now >= end - OVERLAP else ""


def _server_due(held: Held, signer: Pair, wanted: Wanted, now: datetime) -> tuple[Step, str]:
    if held.served is None or held.anchor is None:
        return Step.REPLACE, "; ".join(held.faults) or "ca.crt did not sign tls.crt"
    chain = held.served.certificate
    if not starts_at(chain) <= now < min(expires_at(chain), expires_at(held.anchor)):
        valid = f"from {starts_at(chain):%Y-%m-%d} to {expires_at(chain):%Y-%m-%d}"
        return Step.REPLACE, f"tls.crt is valid {valid}"
    if held.anchor != signer.certificate:
        due = now >= _moves_at(held)
        return (Step.RENEW, "the authority before ends") if due else (Step.WAIT, "")
    if not serves(chain, wanted.names):
        return Step.RENEW, f"tls.crt is not for {wanted.names}"
    return (Step.RENEW, "tls.crt ends") if needs_renewal(chain, now) else (Step.WAIT, "")


def _moves_at(held: Held) -> datetime:
    """Return when the server goes over to the next authority."""
    assert held.served is not None
    return expires_at(held.served.certificate) - LAST


def _client_due(held: Held, wanted: Wanted, now: datetime) -> tuple[Step, str]:
    if not wanted.client:
        return Step.WAIT, ""
    found = anchor_of(held.client, held.authorities)
    if held.client is None or found is None:
        return Step.HAND_OUT, "; ".join(held.faults) or "ca.crt did not sign client.crt"
    if not is_named(held.client.certificate, wanted.client):
        return Step.HAND_OUT, f"client.crt is not that of {wanted.client}"
    if now >= expires_at(held.client.certificate):
        return Step.HAND_OUT, "client.crt has expired"
    signer, since = signer_of(held), held.trusted_since
    accepted = since is None or since > now or now >= since + LOADED
    if signer is not None and found != signer.certificate and accepted:
        return Step.HAND_OUT, "extenders accept callers of the next authority"
    return Step.WAIT, ""


def _next_time(held: Held, signer: Pair, now: datetime) -> datetime:
    assert held.served is not None
    own = held.anchor == signer.certificate
    times = [
        renewal_at(held.served.certificate) if own else _moves_at(held),
        expires_at(signer.certificate) - OVERLAP,
        *map(expires_at, held.authorities),
    ]
    if held.trusted_since is not None:
        times.append(held.trusted_since + LOADED)
    return min(each for each in times if each > now)


def _of_others(held: Held, now: datetime) -> Plan:
    if held.served is None:
        fault = "; ".join(held.faults) or "tls.crt is missing"
        return Plan(Step.BLOCKED, f"{held.theirs}, and of no use: {fault}")
    end = expires_at(held.served.certificate)
    if now >= end:
        return Plan(Step.BLOCKED, f"{held.theirs}, and expired on {end:%Y-%m-%d}")
    return Plan(Step.WAIT, f"{held.theirs}: who made it renews it", end)


# ---- what a step changes


def changed(step: Step, held: Held | None, wanted: Wanted, now: datetime) -> Held:
    """Return what the Secret holds after a step."""
    before = held or Held()
    match step:
        case Step.CREATE:
            return _created(wanted, now)
        case Step.SUCCEED:
            return _succeeded(before, wanted, now)
        case Step.REPLACE | Step.RENEW:
            leaf = issue_leaf(_signer(before), wanted.names, now)
            return replace(before, served=leaf, served_since=now)
        case Step.HAND_OUT:
            return replace(before, client=issue_client(_signer(before), wanted.client, now))
        case Step.DROP:
            return replace(before, authorities=_living(before, now))
    raise AssertionError(step)


def _created(wanted: Wanted, now: datetime) -> Held:
    authority = new_authority(wanted.authority, now)
    return Held(
        authorities=(authority.certificate,),
        authority_key=authority.key,
        served=issue_leaf(authority, wanted.names, now),
        client=issue_client(authority, wanted.client, now) if wanted.client else None,
        served_since=now,
    )


def _succeeded(held: Held, wanted: Wanted, now: datetime) -> Held:
    """Put the next authority beside the one before, which signs once more, for as long as it is."""
    following, before = new_authority(wanted.authority, now), signer_of(held)
    served = held.served
    usable = before is not None and now < expires_at(before.certificate)
    if usable and before is not None and held.anchor == before.certificate:
        served = issue_leaf(before, wanted.names, now, CA_LIFETIME)
    return replace(
        held,
        authorities=(*_living(held, now), following.certificate),
        authority_key=following.key,
        served=served,
        trusted_since=now,
    )


def _signer(held: Held) -> Pair:
    found = signer_of(held)
    assert found is not None
    return found


def _living(held: Held, now: datetime) -> tuple[bytes, ...]:
    return tuple(each for each in held.authorities if now < expires_at(each))
