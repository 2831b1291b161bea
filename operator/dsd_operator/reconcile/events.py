"""Kubernetes Events of a resource: one for each transition of its status, not one for each pass that sees it."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from dsd_operator.api.constants import API_VERSION, KIND
from dsd_operator.cluster import resources
from dsd_operator.cluster.client import Client
from dsd_operator.cluster.errors import ApiError, Gone
from dsd_operator.status.events import Event

REPORTING_CONTROLLER: Final = "dsd-operator.io/operator"
_ACTION: Final = "Reconcile"
_SAME_AGAIN_SECONDS: Final = 300.0

_log = logging.getLogger(__name__)


@dataclass
class Recorder:
    """Posts Events. What flips back and forth within five minutes is told once."""

    client: Client
    instance: str
    now: Callable[[], datetime]
    clock: Callable[[], float]
    """Monotonic seconds."""
    _posted: dict[tuple[str, Event], float] = field(default_factory=dict)

    async def post(self, body: Mapping[str, Any], events: Iterable[Event]) -> None:
        """Post what is new about the object `body`. Raises nothing: an Event is never worth another pass."""
        meta = body["metadata"]
        for event in events:
            if self._is_repeated(meta["uid"], event):
                continue
            try:
                await self.client.create(resources.EVENT, meta["namespace"], self._manifest(meta, event))
            except Gone:
                return
            except ApiError as error:
                _log.warning("Cannot post Event %s: %s", event.reason, error.message)
            else:
                self._posted[meta["uid"], event] = self.clock()

    def _is_repeated(self, uid: str, event: Event) -> bool:
        now = self.clock()
        while self._posted and now - next(iter(self._posted.values())) >= _SAME_AGAIN_SECONDS:
            del self._posted[next(iter(self._posted))]  # the oldest is the first
        return (uid, event) in self._posted

    def _manifest(self, meta: Mapping[str, Any], event: Event) -> dict[str, Any]:
        return {
            "apiVersion": resources.EVENT.api_version,
            "kind": resources.EVENT.kind,
            "metadata": {"generateName": f"{meta['name'][:200]}-", "namespace": meta["namespace"]},
            "eventTime": self.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": REPORTING_CONTROLLER,
            "reportingInstance": self.instance,
            "action": _ACTION,
            "type": event.type,
            "reason": event.reason,
            "note": event.message,
            "regarding": {
                "apiVersion": API_VERSION,
                "kind": KIND,
                "namespace": meta["namespace"],
                "name": meta["name"],
                "uid": meta["uid"],
                "resourceVersion": meta["resourceVersion"],
            },
        }
