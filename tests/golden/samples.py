"""The samples, parsed and rendered the way the operator does it."""

from pathlib import Path
from typing import Any, Final

import yaml

from dsd_operator.api import DSDDeployment, parse
from dsd_operator.render.context import RenderContext
from dsd_operator.render.plan import plan
from dsd_operator.render.revision import owner_of
from dsd_runtime.protocol import Revision, TokenReviewAuth

ROOT: Final = Path(__file__).parents[2]
SAMPLES: Final = sorted((ROOT / "samples").glob("*.yaml"))

_IDENTITY: Final = {"namespace": "default", "uid": "00000000-0000-0000-0000-000000000001", "generation": 1}
_AUTH: Final = TokenReviewAuth(
    issuer="https://kubernetes.default.svc",
    audience="dsd-operator.io/default/sample",
    subject="system:serviceaccount:dsd-system:dsd-operator",
    jwks={"keys": []},
)


def load(sample: Path) -> DSDDeployment:
    """A sample as the API server would hand it back."""
    body = yaml.safe_load(sample.read_text())
    return parse({**body, "metadata": {**_IDENTITY, **body["metadata"]}})


def render(sample: Path) -> dict[str, dict[str, Any]]:
    """Its children by kind, in apply order."""
    resource = load(sample)
    context = RenderContext("dsd-runtime:golden", Revision(owner=owner_of(resource), number=1), _AUTH)
    return {manifest["kind"]: manifest for manifest in plan(resource, context)}


def container_arguments(sample: Path) -> list[str]:
    """The engine's arguments as the container gets them, after the kubelet has made `$$` a `$`."""
    (engine,) = [c for c in pod_spec(sample)["containers"] if c["name"] == "engine"]
    return [argument.replace("$$", "$") for argument in engine["args"]]


def pod_spec(sample: Path) -> dict[str, Any]:
    """The pod spec of its Deployment, or of the leaders of its LeaderWorkerSet."""
    made = render(sample)
    if "Deployment" in made:
        template = made["Deployment"]["spec"]["template"]
    else:
        template = made["LeaderWorkerSet"]["spec"]["leaderWorkerTemplate"]["leaderTemplate"]
    spec: dict[str, Any] = template["spec"]
    return spec
