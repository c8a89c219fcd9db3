"""Each spec of an AppWrapper is read once, and again when something of it changed."""

import copy
import json
from typing import Any

import msgspec

from kube.objects.app_wrapper import AppWrapper
from tests.wrapper.world import API_VERSION, codeflare, config_map, job
from wrapper.messages import Wrapper
from wrapper.reading import Reading

Json = dict[str, Any]


def seen(reading: Reading, wrapper: Json, **metadata: object) -> Wrapper:
    body = {**wrapper, "metadata": {**wrapper["metadata"], "uid": "u", **metadata}}
    found = reading(msgspec.json.decode(json.dumps(body), type=AppWrapper))
    assert found is not None
    return found


def test_a_spec_that_was_edited_is_read_anew() -> None:
    reading, wrapper = Reading(API_VERSION), codeflare(job())
    assert seen(reading, wrapper).contents.pods == 1
    edited = copy.deepcopy(wrapper)
    edited["spec"]["components"].append({"template": job("more")})
    assert seen(reading, edited, generation=2).contents.pods == 2


def test_an_annotation_that_sets_retries_is_read_anew_and_one_of_others_is_not() -> None:
    reading, wrapper = Reading(API_VERSION), codeflare(config_map())
    first = seen(reading, wrapper)
    said = wrapper["metadata"]["annotations"]
    others = seen(reading, wrapper, annotations={**said, "example.com/note": "1"}, finalizers=["f"])
    assert others.contents is first.contents
    key = "workload.codeflare.dev.appwrapper/retryLimit"
    patient = seen(reading, wrapper, annotations={**said, key: "7"})
    assert patient.contents.patience != first.contents.patience
