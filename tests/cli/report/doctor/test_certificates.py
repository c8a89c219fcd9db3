"""Doctor judges certificates and who makes them."""

import base64

import pytest

from cli.report.doctor.checks import examine
from cli.report.doctor.findings import State
from cli.report.snapshot import Unread
from tests.cli.report.doctor.clusters import (
    AGED,
    ENDED,
    GOOD,
    HOLD,
    secret,
    seen,
    states,
    webhook,
    webhooks,
    without,
)


def test_the_older_authority_of_a_bundle_does_not_count() -> None:
    both = base64.b64encode(base64.b64decode(ENDED) + base64.b64decode(GOOD)).decode()
    bundle = webhooks(webhook("gate.muster.dev", "Fail", both), HOLD)
    examined = seen(configurations=bundle, secrets=Unread("secrets", "no"))
    assert states(examined)["certificate authority"] is State.OK


def test_cert_manager_takes_the_place_of_muster_certs() -> None:
    changed = webhooks(webhook("gate.muster.dev", "Fail"), HOLD)
    deployments = without("deployments", 2)
    assert states(seen(deployments=deployments))["muster-certs"] is State.FAIL
    injected = {"cert-manager.io/inject-ca-from": "muster-system/muster-webhook"}
    changed[0]["metadata"]["annotations"] = injected
    found = states(seen(configurations=changed, deployments=deployments))
    assert "muster-certs" not in found
    assert {*found.values()} == {State.OK}


def test_where_others_make_the_certificate_muster_certs_is_not_missed() -> None:
    found = seen(
        deployments=without("deployments", 2), secrets=[secret({"tls.crt": GOOD}, made_by="")]
    )
    assert "muster-certs" not in states(found)


@pytest.mark.parametrize(("content", "state"), [(GOOD, State.OK), (ENDED, State.FAIL)])
def test_a_certificate_that_cert_manager_writes_is_called_its(content: str, state: State) -> None:
    """It takes over a Secret of muster-certs with the labels that it has."""
    held = secret({"tls.crt": content})
    held["metadata"]["annotations"] = {"cert-manager.io/certificate-name": "theirs"}
    report = seen(deployments=without("deployments", 2), secrets=[held])
    assert "muster-certs" not in states(report)
    (found,) = [each for each in examine(report).findings if each.check == "certificate"]
    assert found.state is state
    assert "cert-manager writes it (Certificate theirs): muster-certs leaves it" in found.message
    asks = "kubectl -n muster-system describe certificate theirs"
    assert found.remedy == ("" if state is State.OK else asks)


def test_the_authority_that_serves_is_no_new_one() -> None:
    held = secret({"tls.crt": GOOD, "ca.crt": GOOD, "ca.key": "x"}, "muster-extender-tls")
    found = states(seen(secrets=[secret({"tls.crt": GOOD}), held]))
    assert found["extender certificate"] is State.OK
    assert "extender authority" not in found


def test_a_chain_lasts_as_long_as_its_link_that_ends_first() -> None:
    chain = base64.b64encode(base64.b64decode(GOOD) + base64.b64decode(AGED)).decode()
    assert states(seen(secrets=[secret({"tls.crt": chain})]))["certificate"] is State.WARN
