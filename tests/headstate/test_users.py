"""Users follow from the RayCluster's uid alone, and servers are made to have them, no more."""

from __future__ import annotations

import hashlib

import pytest

from headstate.users import (
    COMMANDS,
    WITHOUT_GROWTH,
    digest_of,
    digests_of,
    is_uid,
    lacking_names,
    lacking_rules,
    password_of,
    rule_of,
    uid_of_key,
    uid_of_user,
    user_of,
)

ONE = "11111111-1111-4111-8111-111111111111"
TWO = "22222222-2222-4222-8222-222222222222"
THREE = "33333333-3333-4333-8333-333333333333"
KEY, NEXT = b"k" * 32, b"n" * 32
ADMIN = "user muster on #00 ~* &* +@all"


def listed(uid: str, digests: frozenset[str], *more: str) -> str:
    """A rule as Redis 7.0 says it: flags of its own, and commands in its own order."""
    passwords = " ".join(f"#{each}" for each in digests)
    commands = " ".join(f"+{each}" for each in reversed(COMMANDS))
    rule = f"~RAY{uid}@* ~DUMMY resetchannels -@all {commands}"
    return " ".join((f"user ray-{uid} on sanitize-payload {passwords} {rule}", *more))


def test_passwords_follow_from_key_and_uid() -> None:
    found = {password_of(key, uid) for key in (KEY, NEXT) for uid in (ONE, TWO)}
    assert len(found) == 4
    assert password_of(KEY, ONE) == password_of(KEY, ONE)
    assert all(len(each) == 64 for each in found)
    assert digest_of("secret") == hashlib.sha256(b"secret").hexdigest()


def test_a_rule_opens_the_keys_of_one_uid_and_the_commands_that_ray_sends() -> None:
    rule = rule_of(ONE, {"d"})
    assert rule[:3] == ("reset", "on", "#d")
    assert [each for each in rule if each[0] in "~%&"] == [f"~RAY{ONE}@*", "~DUMMY"]
    assert rule[rule.index("-@all") + 1 :] == tuple(f"+{each}" for each in COMMANDS)


@pytest.mark.parametrize("uid", ["", "*", "a" * 36, ONE[:-1] + "*", ONE.upper().replace("1", "A")])
def test_what_is_no_uid_never_gets_into_a_pattern(uid: str) -> None:
    assert not is_uid(uid)
    with pytest.raises(AssertionError):
        rule_of(uid, {"d"})


def test_users_and_keys_tell_their_uid_and_others_tell_none() -> None:
    assert uid_of_user(user_of(ONE)) == ONE
    assert uid_of_key(f"RAY{ONE}@KV") == ONE
    for other in ("default", "muster", "ray-1", f"ray-{ONE}x", f"x-ray-{ONE}"):
        assert uid_of_user(other) is None
    for other in ("DUMMY", f"RAY{ONE}", f"RAYx{ONE}@KV", "RAYteam@KV"):
        assert uid_of_key(other) is None


def test_names_tell_which_users_are_missing() -> None:
    assert lacking_names(["default", "muster", user_of(ONE), user_of(THREE)], {ONE, TWO}) == (TWO,)


def test_a_rule_that_is_right_is_left_alone() -> None:
    wanted = {uid: rule_of(uid, digests_of([KEY], uid)) for uid in (ONE, TWO)}
    lines = [ADMIN, *(listed(uid, digests_of([KEY], uid)) for uid in wanted)]
    assert lacking_rules(lines, wanted) == ()


@pytest.mark.parametrize(
    "line",
    [
        listed(ONE, digests_of([NEXT], ONE)),
        listed(ONE, digests_of([KEY, NEXT], ONE)),
        listed(ONE, frozenset()),
        listed(ONE, digests_of([KEY], ONE), "+keys"),
        listed(ONE, digests_of([KEY], ONE), "~*"),
        listed(ONE, digests_of([KEY], ONE), "nopass"),
        listed(ONE, digests_of([KEY], ONE)).replace(" on ", " off "),
        listed(ONE, digests_of([KEY], ONE)).replace(" +unlink", ""),
        listed(ONE, digests_of([KEY], ONE)).replace(f"~RAY{ONE}@*", f"~RAY{TWO}@*"),
    ],
)
def test_a_rule_that_differs_is_set_anew(line: str) -> None:
    assert lacking_rules([ADMIN, line], {ONE: rule_of(ONE, digests_of([KEY], ONE))}) == (ONE,)


def test_the_commands_are_those_that_ray_sends() -> None:
    """Seen of 2.52 and 2.60; without any one of them the head or its clean-up ends."""
    assert " ".join(sorted(COMMANDS)) == (
        "del hdel hexists hget hmget hscan hset hsetnx incrby info ping scan unlink"
    )


def test_one_over_the_limit_may_read_and_make_room() -> None:
    assert {*COMMANDS} - {*WITHOUT_GROWTH} == {"hset", "hsetnx", "incrby"}
    rule = rule_of(ONE, digests_of([KEY], ONE), WITHOUT_GROWTH)
    assert lacking_rules([listed(ONE, digests_of([KEY], ONE))], {ONE: rule}) == (ONE,)
