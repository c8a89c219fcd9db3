"""Heads with state in Redis, in a plot: what they and their users have."""

from __future__ import annotations

import base64

from headstate.options import FIELD, secret_of
from headstate.users import password_of, user_of
from kube.objects import names
from testbed.muster import REDIS
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json
from tests.headstate.resp import FakeRedis

LABELLED = {names.HEAD_FAULT_TOLERANCE: names.BUILT_IN}
ADDRESS = f"redis://{REDIS}"
KEY, PASSWORD = "1" * 64, "2" * 64


def options_of(plot: Plot, name: str) -> Json | None:
    found: Json | None = plot.get("RayCluster", name)["spec"].get(FIELD)
    return found


def secret(plot: Plot, name: str) -> str:
    found = secret_of(options_of(plot, name), ADDRESS)
    assert found is not None
    return found


def password(plot: Plot, name: str) -> str:
    """What a Secret holds; empty while it is made anew."""
    found = (each for each in plot.all("Secret") if each["metadata"]["name"] == name)
    data = next(found, {"data": {"password": ""}})["data"]
    return base64.b64decode(data["password"]).decode()


def has_user(redis: FakeRedis, uid: str) -> list[bool]:
    return [user_of(uid) in redis.users[at] for at in redis.servers]


def events(plot: Plot, name: str) -> set[str]:
    every = plot.all("Event")
    return {each["reason"] for each in every if each["regarding"]["name"] == name}


def uid(plot: Plot, name: str) -> str:
    """The uid of a RayCluster."""
    return str(plot.get("RayCluster", name)["metadata"]["uid"])


def wait_secret(plot: Plot, name: str) -> str:
    """Wait until the Secret of a RayCluster has the password of its user; returns its name."""
    found, wanted = secret(plot, name), password_of(KEY.encode(), uid(plot, name))
    exists = plot.path("Secret", found)
    plot.wait(
        lambda: plot.cluster.api.exists(exists) and password(plot, found) == wanted,
        f"the Secret of {name}",
    )
    return found


def wait_no_user(plot: Plot, redis: FakeRedis, uid: str) -> None:
    """Wait until no server has the user of a RayCluster."""
    plot.wait(lambda: has_user(redis, uid) == [False] * 3, "the user to be gone")
