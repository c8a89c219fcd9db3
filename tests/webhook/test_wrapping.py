"""An AppWrapper names its creator, and of what is added to it everything is judged."""

from __future__ import annotations

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from appwrapper.phases import ACTIVE, LEAVING
from kube.objects import names
from kube.objects.user import LONGEST
from tests.webhook.samples import Json
from tests.webhook.wrappers import (
    ANNS,
    JOE,
    JOES_NOTE,
    config_map,
    deployment,
    of_mcad,
    review_of,
    wrapper,
)
from webhook.admission_review import ALLOW, BadReview, Deny
from webhook.wrapping import Judged, Objects, WrapReview, judge, note, read_wrap_review

ALL = frozenset((names.MANAGED_BY, ""))
NAMED = frozenset((names.MANAGED_BY,))
LEFT_ALONE = frozenset(("kube-system", "gangs"))
PATH = "/metadata/annotations/muster.dev~1created-by"
FORGED = '{"username":"system:admin","groups":["system:masters"]}'
OTHER = {"managedBy": "example.com/other"}


def read(review: Json) -> WrapReview:
    found = read_wrap_review(orjson.dumps(review))
    assert isinstance(found, WrapReview)
    return found


def noted(review: Json, taken: frozenset[str] = ALL) -> object:
    return note(read(review), taken)


def judged(review: Json, taken: frozenset[str] = ALL) -> Judged:
    return judge(read(review), taken, LEFT_ALONE)


def refused(review: Json, taken: frozenset[str] = ALL) -> str:
    found = judged(review, taken)
    assert isinstance(found, Deny)
    return found.message


def kinds(found: Judged) -> list[str]:
    assert isinstance(found, Objects)
    return [each.kind.name for each in found.found]


# ---- the note


def test_the_creator_is_noted_over_what_is_there() -> None:
    add = {"op": "add", "path": PATH, "value": JOES_NOTE}
    assert noted(review_of(wrapper(config_map(), note=FORGED))) == [add]
    assert noted(review_of(of_mcad(config_map(), note=FORGED))) == [add]


def test_an_appwrapper_without_annotations_gets_them() -> None:
    whole = {"op": "add", "path": "/metadata/annotations", "value": {names.CREATED_BY: JOES_NOTE}}
    assert noted(review_of(wrapper(config_map()))) == [whole]


def test_the_note_holds_the_whole_user_or_the_creation_is_refused() -> None:
    large = {**JOE, "groups": ["g" * LONGEST]}
    found = noted(review_of(wrapper(config_map()), user=large))
    assert isinstance(found, Deny)
    assert f"more than {LONGEST} bytes" in found.message


@pytest.mark.parametrize("taken", [ALL, NAMED])
def test_anothers_never_keeps_a_note(taken: frozenset[str]) -> None:
    assert noted(review_of(wrapper(config_map(), **OTHER)), taken) == []
    forged = review_of(wrapper(config_map(), note=FORGED, **OTHER))
    assert noted(forged, taken) == [{"op": "remove", "path": PATH}]
    assert "only Muster's webhook writes it" in refused(forged, taken)


def test_beside_another_controller_one_without_managed_by_is_anothers() -> None:
    assert noted(review_of(wrapper(config_map())), NAMED) == []
    assert judged(review_of(wrapper(config_map())), NAMED) is ALLOW
    mine = wrapper(config_map(), managedBy=names.MANAGED_BY)
    assert noted(review_of(mine), NAMED) != []


def test_who_replaces_it_without_the_note_keeps_it_and_may_not_change_it() -> None:
    old = wrapper(config_map(), note=JOES_NOTE)
    bare = review_of(wrapper(config_map()), old, ANNS)
    whole = {"op": "add", "path": "/metadata/annotations", "value": {names.CREATED_BY: JOES_NOTE}}
    assert noted(bare) == [whole]
    forged = review_of(wrapper(config_map(), note=FORGED), old, ANNS)
    assert noted(forged) == []
    assert "as it was when the AppWrapper was created" in refused(forged)


def test_one_from_before_the_webhook_never_gets_a_note() -> None:
    old = wrapper(config_map())
    assert noted(review_of(old, old, ANNS)) == []
    assert "as it was" in refused(review_of(wrapper(config_map(), note=FORGED), old))


def test_what_is_stored_must_name_its_creator() -> None:
    """Another webhook may have changed it after ours."""
    assert "only Muster's webhook writes it" in refused(review_of(wrapper(config_map())))
    forged = review_of(wrapper(config_map(), note=FORGED))
    assert "only Muster's webhook writes it" in refused(forged)


# ---- what is judged


def created(*templates: Json) -> Judged:
    return judged(review_of(wrapper(*templates, note=JOES_NOTE)))


def test_all_that_is_created_is_judged_for_its_creator() -> None:
    found = created(config_map(), deployment())
    assert kinds(found) == ["ConfigMap", "Deployment"]
    assert isinstance(found, Objects)
    assert (found.user.username, found.namespace) == ("joe", "demo")
    mcad = judged(review_of(of_mcad(config_map(), deployment(), note=JOES_NOTE)))
    assert kinds(mcad) == ["ConfigMap", "Deployment"]


@pytest.mark.parametrize("namespace", sorted(LEFT_ALONE))
def test_where_nothing_is_musters_none_is_created(namespace: str) -> None:
    asked: Json = {"namespace": namespace}
    assert refused(review_of(wrapper(config_map(), note=JOES_NOTE), **asked)) == (
        f'metadata.namespace: "{namespace}" is not valid; '
        "allowed: all namespaces but gangs and kube-system"
    )
    theirs = wrapper(config_map(), **OTHER)
    assert judged(review_of(theirs, **asked)) is ALLOW
    before = wrapper(note=JOES_NOTE)
    assert kinds(judged(review_of(wrapper(config_map(), note=JOES_NOTE), before, **asked)))


def test_all_faults_are_said_at_once() -> None:
    elsewhere = config_map()
    elsewhere["metadata"]["namespace"] = "kube-system"
    nested = {**wrapper(), "metadata": {"name": "inner"}}
    found = created(elsewhere, nested, {"kind": "Pod"})
    assert isinstance(found, Deny)
    for part in ("components[0]", "namespace", "components[1]", "AppWrapper", "components[2]"):
        assert part in found.message


def edited(new: Json, old: Json, user: Json = ANNS) -> Judged:
    return judged(review_of(new, old, user))


def test_of_an_edit_only_what_is_new_is_judged_for_its_author() -> None:
    old = wrapper(config_map(), note=JOES_NOTE)
    found = edited(wrapper(config_map(), deployment(), note=JOES_NOTE), old)
    assert kinds(found) == ["Deployment"]
    assert isinstance(found, Objects)
    assert found.user.username == "ann"
    changed = wrapper({**config_map(), "data": {"a": "b"}}, note=JOES_NOTE)
    assert kinds(edited(changed, old)) == ["ConfigMap"]
    assert kinds(edited(wrapper(note=JOES_NOTE), old)) == []


def test_what_has_a_note_is_judged_whatever_else_is_taken_by_now() -> None:
    """It was created while Muster took all, and is created for the user of its note."""
    old = wrapper(config_map(), note=JOES_NOTE)
    new = review_of(wrapper(config_map(), deployment(), note=JOES_NOTE), old, ANNS)
    found = judged(new, NAMED)
    assert isinstance(found, Objects)
    assert (kinds(found), found.user.username) == (["Deployment"], "ann")
    assert judged(review_of(wrapper(deployment()), wrapper(config_map()), ANNS), NAMED) is ALLOW


@pytest.mark.parametrize("phase", sorted(ACTIVE | LEAVING))
def test_what_runs_keeps_its_items(phase: str) -> None:
    old = wrapper(config_map(), note=JOES_NOTE, phase=phase)
    found = edited(wrapper(deployment(), note=JOES_NOTE), old)
    assert isinstance(found, Deny)
    assert f"in phase {phase}" in found.message
    assert edited(wrapper(config_map(), note=JOES_NOTE, suspend=True), old) is ALLOW


def test_one_that_is_faulty_can_still_be_let_go() -> None:
    """It came while the webhook was not there; its finalizers and labels may change."""
    broken = wrapper({"kind": "Odd"})
    assert edited({**broken, "metadata": {**broken["metadata"], "labels": {}}}, broken) is ALLOW


def test_an_edit_brings_no_fault_beside_the_items_either() -> None:
    old = wrapper(config_map(), note=JOES_NOTE)
    new = wrapper(config_map(), note=JOES_NOTE, schedulingSpec={"minAvailable": -1})
    found = edited(new, old)
    assert isinstance(found, Deny)
    assert "minAvailable" in found.message


@pytest.mark.parametrize(
    ("before", "after"),
    [(OTHER, {}), ({}, OTHER), (OTHER, {"managedBy": names.MANAGED_BY})],
)
def test_an_appwrapper_never_changes_hands(before: Json, after: Json) -> None:
    found = edited(wrapper(config_map(), **after), wrapper(config_map(), **before))
    assert isinstance(found, Deny)
    assert "spec.managedBy" in found.message


# ---- what is sent


@pytest.mark.parametrize(
    "request_",
    [{"operation": "DELETE"}, {"subResource": "status"}, {"kind": {"group": "", "kind": "Pod"}}],
)
def test_other_requests_are_let_through(request_: Json) -> None:
    review = review_of(wrapper(config_map()), **request_)
    assert noted(review) == []
    assert judged(review) is ALLOW


@pytest.mark.parametrize(
    "request_",
    [
        {"object": []},
        {"object": None},
        {"userInfo": 3},
        {"namespace": "../kube-system"},
        {"object": {"spec": {"managedBy": 3}}},
        {"operation": "UPDATE", "oldObject": "x"},
    ],
)
def test_what_is_no_appwrapper_is_no_review(request_: Json) -> None:
    found = read_wrap_review(orjson.dumps(review_of(wrapper(config_map()), **request_)))
    assert isinstance(found, BadReview)


@pytest.mark.parametrize("depth", [150, 250, 900, 5_000])
def test_deep_nesting_is_refused_and_never_an_error(depth: int) -> None:
    deep = orjson.dumps(review_of(wrapper({**config_map(), "deep": "?"}, note=JOES_NOTE)))
    body = deep.replace(b'"?"', b"[" * depth + b"]" * depth)
    found = read_wrap_review(body)
    answer = found if isinstance(found, BadReview) else judge(found, ALL, LEFT_ALONE)
    assert isinstance(answer, Objects if depth < 200 else Deny | BadReview)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON)
def test_whatever_is_wrapped_is_answered(items: object, template: object) -> None:
    for spec in (
        {"components": items},
        {"components": [{"template": template}]},
        {"resources": {"GenericItems": [{"generictemplate": template}]}},
        {"resources": items},
    ):
        new = wrapper(note=JOES_NOTE) | {"spec": spec}
        found = read_wrap_review(json.dumps(review_of(new)).encode())
        assert isinstance(found, BadReview) or isinstance(
            judge(found, ALL, LEFT_ALONE), Deny | Objects
        )
