"""spec.cache: one claim at one path for weights and compiled code, and what of it reaches the pods."""

from typing import Any, Final

import pytest

from dsd_operator.render.cache import cache_claim, claim_name, fitted
from dsd_operator.render.labels import labels
from dsd_operator.render.names import names_for
from dsd_operator.render.owner import owner_reference
from dsd_operator.render.pod_template import pod_template
from dsd_operator.render.preflight import problems
from tests.unit.resources import engine, manifests, pod_spec, resource

ON: Final = {"cache": {"size": "100Gi"}}
EXISTING: Final = {"cache": {"existingClaim": "models"}}
CACHES: Final = (
    "XDG_CACHE_HOME", "HF_HOME", "VLLM_CACHE_ROOT", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR",
    "FLASHINFER_WORKSPACE_BASE", "DG_JIT_CACHE_DIR", "NUMBA_CACHE_DIR", "CUDA_CACHE_PATH",
)  # fmt: skip


def environment(changes: dict[str, Any]) -> dict[str, str]:
    return {variable["name"]: variable.get("value", "") for variable in engine(resource(changes))["env"]}


def mounts(changes: dict[str, Any]) -> dict[str, str]:
    return {mount["mountPath"]: mount["name"] for mount in engine(resource(changes))["volumeMounts"]}


def claims(changes: dict[str, Any]) -> list[str]:
    volumes = pod_spec(resource(changes))["volumes"]
    return [v["persistentVolumeClaim"]["claimName"] for v in volumes if "persistentVolumeClaim" in v]


def test_without_a_cache_there_is_neither_claim_nor_mount() -> None:
    assert "PersistentVolumeClaim" not in manifests(resource())
    assert claims({}) == []
    assert "/cache" not in mounts({})
    assert claim_name(resource()) is None


@pytest.mark.parametrize(("changes", "claim"), [(ON, "demo"), (EXISTING, "models")])
def test_weights_and_compiled_code_lie_on_the_claim(changes: dict[str, Any], claim: str) -> None:
    assert claims(changes) == [claim]
    assert mounts(changes)["/cache"] == "dsd-cache"
    env = environment(changes)
    assert all(env[name] == "/cache" or env[name].startswith("/cache/") for name in CACHES)
    assert len({env[name] for name in CACHES}) == len(CACHES)
    assert not env["HOME"].startswith("/cache")
    assert not env["VLLM_CONFIG_ROOT"].startswith("/cache")


def test_the_claim_is_as_asked_and_goes_with_the_resource() -> None:
    made = resource({"cache": {"size": "1024Gi", "storageClass": "fast", "accessMode": "ReadWriteMany"}})
    claim = manifests(made)["PersistentVolumeClaim"]
    assert claim["metadata"]["ownerReferences"] == [owner_reference(made)]
    assert claim["metadata"]["labels"] == labels(names_for("demo"))
    assert claim["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "1024Gi"}},
        "storageClassName": "fast",
    }


def test_the_default_class_is_left_to_the_cluster_and_no_class_is_said() -> None:
    assert "storageClassName" not in cache_claim(resource(ON))["spec"]
    assert cache_claim(resource(ON))["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert cache_claim(resource({"cache": {"size": "1Gi", "storageClass": ""}}))["spec"]["storageClassName"] == ""


def test_an_existing_claim_is_never_ours() -> None:
    assert "PersistentVolumeClaim" not in manifests(resource(EXISTING))


@pytest.mark.parametrize(
    "change", [{"size": "200Gi"}, {"storageClass": "fast"}, {"accessMode": "ReadWriteMany"}], ids=str
)
def test_what_describes_the_claim_alone_reaches_no_pod(change: dict[str, Any]) -> None:
    before, after = resource(ON), resource({"cache": {**ON["cache"], **change}})
    assert pod_template(before, "i") == pod_template(after, "i")
    assert cache_claim(before) != cache_claim(after)


def test_target_and_drafter_share_it() -> None:
    """Both are found below HF_HOME: the command line names no download directory."""
    drafter = {"method": "draft_model", "model": "acme/draft", "numSpeculativeTokens": 3}
    made = engine(resource({**ON, "drafter": drafter}))
    assert not [argument for argument in made["args"] if "download" in argument]
    assert "acme/draft" in " ".join(made["args"])


@pytest.mark.parametrize("changes", [{"cache": {"offline": True}}, {"cache": {"existingClaim": "m", "offline": True}}])
def test_offline_lets_no_request_out(changes: dict[str, Any]) -> None:
    env = environment(changes)
    assert {env[name] for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "VLLM_NO_USAGE_STATS")} == {"1"}
    assert not {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "VLLM_NO_USAGE_STATS"} & environment({}).keys()


def test_what_the_user_sets_wins() -> None:
    env = environment({**ON, "engine.env": [{"name": "HF_HOME", "value": "/data/hf"}]})
    assert env["HF_HOME"] == "/data/hf"
    assert env["VLLM_CACHE_ROOT"] == "/cache/vllm"


def test_a_volume_of_the_users_at_the_same_path_takes_its_place() -> None:
    template = {
        "volumes": [{"name": "mine", "persistentVolumeClaim": {"claimName": "other"}}],
        "containers": [{"name": "engine", "volumeMounts": [{"name": "mine", "mountPath": "/cache"}]}],
    }
    changes = {**EXISTING, "podTemplate.spec": template}
    assert problems(resource(changes)) == []
    assert mounts(changes)["/cache"] == "mine"
    assert claims(changes) == ["other"]


def test_a_models_path_may_lie_on_the_claim() -> None:
    made = engine(resource({**EXISTING, "model.name": "/cache/models/llama"}))
    assert made["args"][0] == "/cache/models/llama"


@pytest.mark.parametrize(
    ("cache", "default", "group"),
    [
        ({"size": "1Gi"}, None, None),
        ({"size": "1Gi"}, 65532, 65532),
        ({"existingClaim": "m"}, 65532, 65532),
        ({"size": "1Gi", "fsGroup": 1000}, 65532, 1000),
        ({"size": "1Gi", "fsGroup": 0}, 65532, None),
        ({"offline": True}, 65532, None),
        ({}, 65532, None),
    ],
)
def test_a_fresh_volume_gets_a_group_unless_the_platform_does_it(
    cache: dict[str, Any], default: int | None, group: int | None
) -> None:
    context = pod_template(resource({"cache": cache}), "i", default)["spec"]["securityContext"]
    assert context.get("fsGroup") == group
    assert context["fsGroupChangePolicy"] == "OnRootMismatch"


def live(storage: str = "100Gi", mode: str = "ReadWriteOnce", storage_class: str | None = "fast") -> dict[str, Any]:
    made = {"accessModes": [mode], "resources": {"requests": {"storage": storage}}, "volumeName": "pv-1"}
    return {
        "status": {"phase": "Bound"},
        "spec": made | ({"storageClassName": storage_class} if storage_class is not None else {}),
    }


WANTED: Final = {"size": "100Gi", "storageClass": "fast"}


@pytest.mark.parametrize(
    ("there", "storage"),
    [("100Gi", "100Gi"), ("50Gi", "100Gi"), ("200Gi", "200Gi"), ("102400Mi", "100Gi")],
    ids=["as-asked", "grows", "grown-by-hand", "same-amount"],
)
def test_a_larger_claim_is_left_alone(there: str, storage: str) -> None:
    fit = fitted(cache_claim(resource({"cache": WANTED})), live(there))
    assert fit.manifest["spec"]["resources"]["requests"]["storage"] == storage
    assert fit.left_out == ""
    assert ("cache.size was to grow from 50Gi to 100Gi" in fit.change) == (there == "50Gi")


@pytest.mark.parametrize(
    ("there", "words"),
    [
        (live(storage_class="slow"), "cache.storageClass is 'fast', the claim has 'slow', and that cannot change"),
        (live(mode="ReadWriteMany"), "cache.accessMode is ReadWriteOnce, the claim has ReadWriteMany"),
    ],
)
def test_what_cannot_change_is_left_and_told_with_the_way_out(there: dict[str, Any], words: str) -> None:
    fit = fitted(cache_claim(resource({"cache": WANTED})), there)
    for field in ("accessModes", "storageClassName"):
        assert fit.manifest["spec"][field] == there["spec"][field]
    assert words in fit.left_out
    assert "name it in existingClaim" in fit.left_out


def test_a_claim_without_a_volume_cannot_grow_yet() -> None:
    waiting = {**live("50Gi"), "status": {"phase": "Pending"}}
    fit = fitted(cache_claim(resource({"cache": WANTED})), waiting)
    assert fit.manifest["spec"]["resources"]["requests"]["storage"] == "50Gi"
    assert "cache.size is 100Gi, the claim has 50Gi, and that cannot change before it is bound" in fit.left_out


def test_the_clusters_default_class_is_no_difference() -> None:
    fit = fitted(cache_claim(resource(ON)), live(storage_class="standard"))
    assert "storageClassName" not in fit.manifest["spec"]
    assert fit.left_out == ""
    fit = fitted(cache_claim(resource({"cache": WANTED})), live(storage_class=None))
    assert (fit.manifest["spec"]["storageClassName"], fit.left_out) == ("fast", "")
