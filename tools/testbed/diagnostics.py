"""What helps after a failed test: status, events, pods and the ends of their logs, bounded."""

import json
from collections.abc import Iterable

from tools.testbed.kube import Json, Kube

_EVENTS = 30
_LOG_LINES = 40


def report(kube: Kube, namespaces: Iterable[str]) -> str:
    """The state of every DSDDeployment and pod in `namespaces` as text."""
    parts = [part for namespace in namespaces for part in _namespace(kube, namespace)]
    return "\n".join(parts)


def _namespace(kube: Kube, namespace: str) -> list[str]:
    parts = [f"===== namespace {namespace}"]
    parts += [_resource(resource) for resource in kube.list("DSDDeployment", namespace)]
    events = sorted(kube.list("Event", namespace), key=_time)[-_EVENTS:]
    parts.append("--- events\n" + "\n".join(_event(event) for event in events))
    parts += [_pod(kube, pod) for pod in kube.list("Pod", namespace)]
    return parts


def _resource(resource: Json) -> str:
    status = resource.get("status") or {}
    conditions = [f"{c['type']}={c['status']} {c['reason']}: {c['message']}" for c in status.get("conditions", [])]
    schedule = json.dumps(status.get("schedule"))
    meta = resource["metadata"]
    head = f"--- DSDDeployment {meta['name']} generation {meta['generation']}, seen {status.get('observedGeneration')}"
    return "\n".join([head, *conditions, f"schedule {schedule}"])


def _time(event: Json) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")


def _event(event: Json) -> str:
    about = event["involvedObject"]
    return f"{_time(event)} {event.get('reason')} {about.get('kind')}/{about.get('name')}: {event.get('message')}"


def _pod(kube: Kube, pod: Json) -> str:
    meta, status = pod["metadata"], pod["status"]
    states = [
        f"{c['name']} ready={c['ready']} restarts={c['restartCount']} {json.dumps(c['state'])}"
        for c in status.get("containerStatuses", [])
    ]
    log = kube.logs(meta["namespace"], meta["name"], tail=_LOG_LINES)
    head = f"--- pod {meta['name']} {status.get('phase')} {status.get('podIP')}"
    return "\n".join([head, *states, log or "no log yet"])
