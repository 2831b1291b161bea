"""Deployment, Service and ServiceAccount: the fields that users of other operators stumbled over."""

import pytest

from dsd_operator.render.service import url
from tests.unit.resources import engine, manifests, resource


def test_the_rollout_follows_the_spec() -> None:
    spec = manifests(resource({"rollout": {"maxSurge": 2, "maxUnavailable": 0}}))["Deployment"]["spec"]
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": 0}}
    default = manifests(resource())["Deployment"]["spec"]["strategy"]["rollingUpdate"]
    assert default == {"maxSurge": 0, "maxUnavailable": 1}


@pytest.mark.parametrize("seconds", [30, 31, 3600, 86400])
def test_loading_may_take_as_long_as_the_spec_says(seconds: int) -> None:
    made = resource({"startup.timeoutSeconds": seconds})
    probe = engine(made)["startupProbe"]
    allowed = probe["periodSeconds"] * probe["failureThreshold"]
    assert seconds <= allowed < seconds + probe["periodSeconds"]
    deployment = manifests(made)["Deployment"]["spec"]
    assert deployment["progressDeadlineSeconds"] > seconds + deployment["minReadySeconds"]


def test_only_the_startup_probe_knows_about_loading() -> None:
    short, long = (engine(resource({"startup.timeoutSeconds": seconds})) for seconds in (60, 7200))
    for probe in ("readinessProbe", "livenessProbe"):
        assert short[probe] == long[probe]
        assert "initialDelaySeconds" not in short[probe]


def test_a_crash_leaves_its_last_lines() -> None:
    assert engine(resource())["terminationMessagePolicy"] == "FallbackToLogsOnError"


@pytest.mark.parametrize(("policy", "rendered"), [(None, {}), ("Always", {"imagePullPolicy": "Always"})])
def test_the_image_and_its_policy(policy: str | None, rendered: dict[str, str]) -> None:
    made = engine(resource({"engine.imagePullPolicy": policy}))
    assert made["image"] == "registry.local/dsd-runtime:1"
    assert {key: value for key, value in made.items() if key == "imagePullPolicy"} == rendered


@pytest.mark.parametrize("section", ["limits", "requests", "claims"])
def test_an_emptied_section_of_resources_is_as_if_it_were_not_there(section: str) -> None:
    empty: object = [] if section == "claims" else {}
    assert manifests(resource({"resources": {section: empty}})) == manifests(resource())


def test_the_service_account_has_neither_token_nor_secrets() -> None:
    account = manifests(resource())["ServiceAccount"]
    assert account["automountServiceAccountToken"] is False
    assert not account.keys() & {"secrets", "imagePullSecrets"}
    spec = manifests(resource())["Deployment"]["spec"]["template"]["spec"]
    assert spec["serviceAccountName"] == account["metadata"]["name"]


def test_the_url_names_the_real_service() -> None:
    made = resource(name="tiny-llama-v0.1")
    assert url(made) == f"http://{manifests(made)['Service']['metadata']['name']}.team-a.svc:8000"


@pytest.mark.parametrize(("limit", "rendered"), [(None, "8Gi"), ("16Gi", "16Gi"), (1024, "1024")])
def test_shared_memory_has_a_size(limit: object, rendered: str) -> None:
    volumes = manifests(resource({"sharedMemory.sizeLimit": limit}))["Deployment"]["spec"]["template"]["spec"][
        "volumes"
    ]
    (shm,) = [volume for volume in volumes if volume["name"] == "dsd-shm"]
    assert shm["emptyDir"] == {"medium": "Memory", "sizeLimit": rendered}
