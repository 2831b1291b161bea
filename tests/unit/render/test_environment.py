"""Environment of the engine: one entry per name, the user's order, everything writable on a volume."""

from typing import Any

import pytest

from tests.unit.resources import engine, pod_spec, resource

WRITABLE = ("HOME", "TMPDIR", "XDG_CACHE_HOME", "HF_HOME", "VLLM_CACHE_ROOT", "VLLM_CONFIG_ROOT", "TRITON_CACHE_DIR",
            "TORCHINDUCTOR_CACHE_DIR", "NUMBA_CACHE_DIR", "PROMETHEUS_MULTIPROC_DIR")  # fmt: skip


def variables(changes: dict[str, Any]) -> list[dict[str, Any]]:
    env: list[dict[str, Any]] = engine(resource(changes))["env"]
    return env


def template_env(*env: dict[str, Any]) -> dict[str, Any]:
    return {"podTemplate.spec": {"containers": [{"name": "engine", "env": list(env)}]}}


def test_every_directory_that_is_written_lies_on_a_volume() -> None:
    made = engine(resource())
    mounts = [mount["mountPath"] for mount in made["volumeMounts"] if not mount.get("readOnly")]
    env = {variable["name"]: variable["value"] for variable in made["env"]}
    for name in WRITABLE:
        assert any(env[name] == mount or env[name].startswith(f"{mount}/") for mount in mounts), name
    assert env["USER"]


@pytest.mark.parametrize(("runner", "value"), [("V1", "0"), ("V2", "1"), ("Auto", None)])
def test_the_model_runner_is_a_variable(runner: str, value: str | None) -> None:
    found = {variable["name"]: variable.get("value") for variable in variables({"engine.modelRunner": runner})}
    assert found.get("VLLM_USE_V2_MODEL_RUNNER") == value


def test_the_token_comes_from_the_secret() -> None:
    env = variables({"model.tokenSecretRef": {"name": "hub", "key": "token"}})
    assert env[-1] == {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}


def test_a_default_that_the_user_sets_gives_way() -> None:
    env = variables({"engine.env": [{"name": "ROOT", "value": "/data"}, {"name": "HF_HOME", "value": "$(ROOT)/hf"}]})
    assert [variable["name"] for variable in env].count("HF_HOME") == 1
    assert env[-2:] == [{"name": "ROOT", "value": "/data"}, {"name": "HF_HOME", "value": "$(ROOT)/hf"}]


def test_the_pod_template_overrides_engine_env() -> None:
    changes = {"engine.env": [{"name": "HF_HOME", "value": "/a"}, {"name": "X", "value": "1"}]}
    env = variables({**changes, **template_env({"name": "HF_HOME", "value": "/b"})})
    assert [variable for variable in env if variable["name"] == "HF_HOME"] == [{"name": "HF_HOME", "value": "/b"}]
    assert {"name": "X", "value": "1"} in env


def test_the_users_order_is_kept_within_each_list() -> None:
    given = [{"name": name, "value": "$(A)"} for name in ("Z", "A", "M")]
    env = variables({"engine.env": given, **template_env({"name": "C", "value": "1"}, {"name": "B", "value": "2"})})
    assert [variable["name"] for variable in env][-5:] == ["Z", "A", "M", "C", "B"]


def test_value_from_replaces_value_and_back() -> None:
    reference = {"name": "X", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    literal = {"name": "X", "value": "1"}
    assert variables({"engine.env": [literal], **template_env(reference)})[-1] == reference
    assert variables({"engine.env": [reference], **template_env(literal)})[-1] == literal


def test_no_service_becomes_a_variable_and_no_token_is_mounted() -> None:
    spec = pod_spec(resource())
    assert spec["enableServiceLinks"] is False
    assert spec["automountServiceAccountToken"] is False
