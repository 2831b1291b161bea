"""Asks a real API server whether it would take a DSDDeployment, without storing it (server-side dry run).

For a change what was there before has to be stored; it goes again.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

from dsd_operator.api import constants

NAMESPACE: Final = "default"
_KIND: Final = (constants.GROUP, constants.VERSION, NAMESPACE, constants.PLURAL)
DELETE: Final = "!delete"
"""As a value in a change: the field is removed. (A null stays a null, as users write it.)"""

BASE: Final = yaml.safe_load(
    """
    apiVersion: dsd-operator.io/v1alpha1
    kind: DSDDeployment
    metadata: {name: demo}
    spec:
      model: {name: acme/tiny-llama}
      drafter: {method: ngram, numSpeculativeTokens: 3, promptLookup: {min: 2, max: 4}}
      schedule:
      - {startBatchSize: 1, endBatchSize: 8, numSpeculativeTokens: 3}
      - {startBatchSize: 9, endBatchSize: 256, numSpeculativeTokens: 1}
    """
)


@dataclass(frozen=True)
class Case:
    """A change of BASE (YAML), and for a rejected one the text that the answer must hold."""

    name: str
    change: str
    message: str = ""

    def body(self) -> dict[str, Any]:
        """BASE with the change merged into it."""
        merged: dict[str, Any] = merge(BASE, yaml.safe_load(self.change))
        return merged


def merge(base: Any, change: Any) -> Any:
    """`change` laid over `base`: maps merge, everything else replaces."""
    if not isinstance(base, Mapping) or not isinstance(change, Mapping):
        return deepcopy(change)
    result = {key: deepcopy(value) for key, value in base.items() if change.get(key) != DELETE}
    return result | {key: merge(base.get(key), value) for key, value in change.items() if value != DELETE}


class Admission:
    """The API server's judgement on single objects."""

    def __init__(self, kubeconfig: Path) -> None:
        self._api = client.CustomObjectsApi(config.new_client_from_config(str(kubeconfig)))

    def create(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """What would be stored; raises Refused with the API server's message."""
        with _refusals():
            stored: dict[str, Any] = self._api.create_namespaced_custom_object(
                *_KIND, dict(body), dry_run="All", field_validation="Strict"
            )
        return stored

    def change(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """What is stored as `before` becomes `after`; raises Refused with the API server's message."""
        stored = self._api.create_namespaced_custom_object(*_KIND, dict(before))
        name, wanted = stored["metadata"]["name"], {**stored, "spec": after["spec"]}
        try:
            with _refusals():
                self._api.replace_namespaced_custom_object(
                    *_KIND, name, wanted, dry_run="All", field_validation="Strict"
                )
        finally:
            self._api.delete_namespaced_custom_object(*_KIND, name)


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except ApiException as error:
        raise Refused(error.status, yaml.safe_load(error.body)["message"]) from error


class Refused(Exception):  # noqa: N818 - an answer, not a fault
    """The API server does not take the object."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
