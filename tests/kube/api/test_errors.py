"""Every answer that is not 2xx becomes one error of the tree, and says what it leaves open."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.api import errors


@pytest.mark.parametrize(
    ("status", "kind", "unknown"),
    [
        (400, errors.ApiError, False),
        (401, errors.Unauthorized, False),
        (403, errors.Forbidden, False),
        (404, errors.NotFound, False),
        (409, errors.Conflict, False),
        (410, errors.Gone, False),
        (422, errors.Invalid, False),
        (429, errors.TooManyRequests, False),
        (500, errors.ServerError, True),
        (504, errors.ServerError, True),
    ],
)
def test_a_status_has_its_error(status: int, kind: type[Exception], unknown: bool) -> None:
    body = json.dumps({"kind": "Status", "reason": "R", "message": "m", "code": status}).encode()
    error = errors.error_from_response(status, body, {})
    assert type(error) is kind
    assert (error.status, error.reason, error.message) == (status, "R", "m")
    assert error.outcome_unknown is unknown


def test_a_write_that_never_left_is_known_not_to_have_happened() -> None:
    assert not errors.Unreachable("refused", sent=False).outcome_unknown
    assert errors.Unreachable("reset", sent=True).outcome_unknown
    assert errors.Timeout("late").outcome_unknown
    assert errors.Garbled("cut").outcome_unknown
    assert not errors.NoAccess("no file").outcome_unknown


def test_the_wait_asked_for_is_in_the_header_or_in_the_body() -> None:
    body = json.dumps({"code": 429, "details": {"retryAfterSeconds": 3}}).encode()
    assert errors.error_from_response(429, body, {}).retry_after == 3
    assert errors.error_from_response(429, body, {"Retry-After": "7"}).retry_after == 7
    dated = {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}
    assert errors.error_from_response(503, b"", dated).retry_after is None


def test_a_page_of_a_proxy_is_an_error_with_its_text() -> None:
    error = errors.error_from_response(502, b"<html>bad gateway</html>", {})
    assert isinstance(error, errors.ServerError)
    assert "bad gateway" in error.message


@given(st.integers(300, 599), st.binary(max_size=200))
def test_no_answer_whatever_breaks_the_reading(status: int, body: bytes) -> None:
    assert isinstance(errors.error_from_response(status, body, {}), errors.ApiError)


def _closing(*reasons: str | None) -> errors.ApiError:
    causes = [
        {"reason": reason, "message": "m", "field": "metadata.namespace"} for reason in reasons
    ]
    said = {"reason": "Forbidden", "code": 403, "details": {"causes": causes}}
    return errors.error_from_response(403, json.dumps(said).encode(), {})


NO_RIGHT = (
    'pods "a" is forbidden: User "system:serviceaccount:muster-system:muster-coordinator" '
    'cannot patch resource "pods/status" in API group "" in the namespace "team"'
)


@pytest.mark.parametrize(
    ("text", "of_role"),
    [
        (NO_RIGHT, True),
        ('admission webhook "guard.example.com" denied the request: no', False),
        ('pods "a" is forbidden: ValidatingAdmissionPolicy "p" denied request: no', False),
    ],
)
def test_a_right_that_is_missing_is_told_from_the_answer_of_an_admission_plugin(
    text: str, *, of_role: bool
) -> None:
    said = json.dumps({"reason": "Forbidden", "code": 403, "message": text}).encode()
    assert errors.is_of_role(errors.error_from_response(403, said, {})) == of_role
    assert not errors.is_of_role(errors.ServerError(500, "Forbidden", text))


def test_what_goes_with_its_namespace_is_told_from_what_is_forbidden() -> None:
    """As the API server says it, and as it says that it serves no such thing."""
    assert errors.is_of_what_goes(_closing(None, errors.NAMESPACE_TERMINATING))
    assert not errors.is_of_what_goes(_closing("FieldValueInvalid"))
    assert not errors.is_of_what_goes(_closing())
    missing = json.dumps({"reason": "NotFound", "code": 404}).encode()
    assert errors.is_of_what_goes(errors.error_from_response(404, missing, {}))
    not_served = errors.error_from_response(404, b"404 page not found", {})
    assert not errors.is_of_what_goes(not_served)
    assert not errors.is_of_what_goes(errors.Timeout("late"))
