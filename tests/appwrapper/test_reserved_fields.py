"""Nothing in a wrapped object gets around what Muster decides."""

from typing import Any

import pytest

from kube.objects import names
from tests.appwrapper.samples import (
    Json,
    codeflare,
    component,
    config_map,
    deployment,
    mcad,
    mcad_item,
    obj,
    pod_spec,
    ray_cluster,
    said,
    template,
)


def labelled(key: str) -> Json:
    return {**config_map(), "metadata": {"name": "settings", "labels": {key: "x"}}}


@pytest.mark.parametrize(
    "key",
    [
        names.APP_WRAPPER,
        names.POD_SET,
        names.OPT_IN,
        names.FENCE,
        names.CREATE_PODS,
        "muster.dev/x",
    ],
)
def test_our_keys_are_not_an_items_to_write(key: str) -> None:
    """Wherever they stand: on the object, its template, or a group of KubeRay."""
    (message,) = said(codeflare(labelled(key)))
    assert message.startswith(
        f'spec.components[0] (ConfigMap settings): template.metadata.labels: "{key}" is not valid'
    )
    (message,) = said(codeflare(obj("v1", "Pod", "p", spec=pod_spec(nodeSelector={key: "x"}))))
    assert "template.spec.nodeSelector" in message
    cluster = ray_cluster("rc")
    cluster["spec"]["workerGroupSpecs"][0]["labels"] = {key: "x"}
    (message,) = said(codeflare(cluster))
    assert "template.spec.workerGroupSpecs[0].labels" in message


@pytest.mark.parametrize(
    ("made_of", "field"),
    [
        (deployment(nodeName="a"), "template.spec.template.spec.nodeName"),
        (obj("v1", "Pod", "web", spec=pod_spec(nodeName="a")), "template.spec.nodeName"),
        (
            obj(
                "example.org/v1",
                "Any",
                "web",
                spec={"deep": [{"template": template(nodeName="a")}]},
            ),
            "template.spec.deep[0].template.spec.nodeName",
        ),
        (
            deployment(schedulingGates=[{"name": names.GATE}]),
            "template.spec.template.spec.schedulingGates",
        ),
        (
            obj("v1", "Pod", "web", spec=pod_spec(), status={"nominatedNodeName": "a"}),
            "template.status.nominatedNodeName",
        ),
        (
            {**config_map(), "metadata": {"name": "web", "ownerReferences": [{"uid": "u-2"}]}},
            "template.metadata.ownerReferences",
        ),
    ],
)
def test_placements_gates_and_owners_are_not_an_items_to_write(made_of: Json, field: str) -> None:
    (message,) = said(codeflare(made_of))
    assert f": {field}: " in message


@pytest.mark.parametrize(
    "made_of",
    [
        deployment(schedulingGates=[{"name": "example.org/other"}]),
        obj("v1", "ConfigMap", "c", data={"nodeName": "a", "musterdev": "muster.dev/x"}),
        {**config_map(), "metadata": {"name": "web", "ownerReferences": []}},
        labelled("muster.device/x"),
    ],
)
def test_what_is_of_others_may_stay(made_of: Json) -> None:
    assert said(codeflare(made_of)) == []


def test_the_field_is_spelt_as_mcad_does() -> None:
    (message,) = said(mcad(mcad_item(labelled(names.POD_SET))))
    assert ": generictemplate.metadata.labels: " in message


@pytest.mark.parametrize(
    "info",
    [
        {"labels": {names.POD_SET: "x"}},
        {"annotations": {names.FENCE: "1"}},
        {"nodeSelector": {"muster.dev/x": "y"}},
        {"schedulingGates": [{"name": names.GATE}]},
    ],
)
def test_what_is_added_to_templates_is_checked_too(info: dict[str, Any]) -> None:
    (message,) = said(component(deployment(), podSetInfos=[info]))
    assert message.startswith("spec.components[0] (Deployment web): podSetInfos[0]: ")
    assert message.endswith("allowed: no key of muster.dev/")
