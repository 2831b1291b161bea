"""A namespace with the tiny models mounted in it: made empty, and removed with its volume."""

from collections.abc import Iterator
from contextlib import contextmanager

from tools.models import tiny
from tools.testbed import manifests
from tools.testbed.handle import CHANGE_TIMEOUT
from tools.testbed.install import models_directory
from tools.testbed.kube import Kube
from tools.testbed.waiting import wait_for


@contextmanager
def site(kube: Kube, namespace: str) -> Iterator[None]:
    """The namespace exists inside the block; what an earlier run left of it goes first."""
    remove(kube, namespace)
    try:
        kube.apply(manifests.namespace(namespace))
        for manifest in manifests.model_volume(namespace, str(tiny.make(models_directory()))):
            kube.apply(manifest)
        yield
    finally:
        remove(kube, namespace)


def remove(kube: Kube, namespace: str) -> None:
    """Remove namespace and volume and wait for their end: a volume that stays Released binds no new claim."""
    kube.remove_namespace(namespace, 2 * CHANGE_TIMEOUT)
    volume = manifests.volume_name(namespace)
    kube.delete("PersistentVolume", None, volume)
    what = f"volume {volume} to be gone"
    wait_for(what, lambda: kube.get("PersistentVolume", None, volume), lambda found: found is None, CHANGE_TIMEOUT)
