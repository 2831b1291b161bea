"""The images as they were built: where they come from (OCI annotations), and the notices they carry."""

import json
import re

import pytest

import dsd_operator
from tools.cluster import api, base_images, buildah, images, locks, paths, project_images

pytestmark = pytest.mark.e2e

PREFIX = "org.opencontainers.image."


@pytest.fixture(scope="module", params=project_images.TARGETS)
def image(request: pytest.FixtureRequest) -> tuple[str, str]:
    """A target and the reference of its image in buildah's storage."""
    if images.from_environment() is not None:
        pytest.skip("the images are the user's (DSD_KUBECONFIG): their registry has them, not this machine")
    reference = getattr(api.images(), request.param)
    if not buildah.exists(reference):
        buildah.pull(reference)
    return request.param, reference


def test_labels(image: tuple[str, str]) -> None:
    target, reference = image
    config = json.loads(buildah.buildah("inspect", "--type", "image", reference))["OCIv1"]["config"]
    labels = {k.removeprefix(PREFIX): v for k, v in config["Labels"].items() if k.startswith(PREFIX)}
    bases = base_images.references()
    assert labels.pop("title") == f"dsd-{target}"
    assert labels.pop("licenses") == "Apache-2.0"
    assert labels.pop("version") == dsd_operator.__version__
    assert labels.pop("base.name") == {"operator": bases.python, "runtime": bases.vllm}[target]
    assert re.fullmatch(r"[0-9a-f]{40}(-dirty)?", labels.pop("revision"))
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)", labels.pop("created"))
    assert labels.pop("source").startswith("https://")
    assert len(labels.pop("description")) > 20
    assert labels == {}


def test_notices(image: tuple[str, str]) -> None:
    _, reference = image
    # A build removes containers that it finds: they are of builds that were killed.
    building = locks.locked(paths.cache_root() / "images.lock", "building images")
    with building, buildah.working_container(reference) as container:
        found = {path.name: path.read_text() for path in (buildah.mount(container) / "licenses").iterdir()}
    assert found == {name: (paths.REPOSITORY / name).read_text() for name in ("LICENSE", "THIRD-PARTY.md")}
