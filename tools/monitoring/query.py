"""Questions to a Prometheus over its HTTP API: instant and range queries, targets, alerts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx

Labels = Mapping[str, str]
_SECONDS: Final = 60.0


class QueryError(Exception):
    """Prometheus refused a query; the text is its own."""


@dataclass(frozen=True)
class Series:
    """One series of an answer: its labels and its points (Unix seconds, value), in order of time."""

    labels: Labels
    points: tuple[tuple[float, float], ...]

    @property
    def value(self) -> float:
        """The latest value."""
        return self.points[-1][1]


@dataclass(frozen=True)
class Prometheus:
    """The server at `url`."""

    url: str

    def instant(self, query: str, at: float | None = None) -> list[Series]:
        """The answer at one moment (Unix seconds; None: now). A scalar is one series without labels."""
        moment = {} if at is None else {"time": str(at)}
        return _series(self.get("query", query=query, **moment))

    def range(self, query: str, start: float, end: float, step: float) -> list[Series]:
        """The answer from `start` to `end` (Unix seconds), every `step` seconds."""
        return _series(self.get("query_range", query=query, start=str(start), end=str(end), step=str(step)))

    def value(self, query: str, at: float | None = None) -> float:
        """The value of a query that answers one series. Raises ValueError when it is none or several."""
        found = self.instant(query, at)
        if len(found) != 1:
            raise ValueError(f"{len(found)} series, not one: {query}")
        return found[0].value

    def targets(self) -> list[dict[str, Any]]:
        """The targets that are scraped: `labels`, `health` (up, down, unknown), `lastError`, `scrapeUrl`, …"""
        found: list[dict[str, Any]] = self.get("targets", state="active")["activeTargets"]
        return found

    def alerts(self) -> list[dict[str, Any]]:
        """The alerts that are pending or firing: `labels`, `annotations`, `state`, `value`."""
        found: list[dict[str, Any]] = self.get("alerts")["alerts"]
        return found

    def rule_groups(self) -> list[dict[str, Any]]:
        """The groups of rules as loaded, each rule with its `health` and `lastError`."""
        found: list[dict[str, Any]] = self.get("rules")["groups"]
        return found

    def reload(self) -> None:
        """Read configuration and rules again. Raises QueryError with the reason when they are wrong."""
        answer = httpx.post(f"{self.url}/-/reload", timeout=_SECONDS, trust_env=False)
        if not answer.is_success:
            raise QueryError(answer.text.strip())

    def get(self, path: str, **parameters: str) -> Any:
        """The `data` of /api/v1/`path`. Raises QueryError with the server's message."""
        # POST, as Grafana does: a query may be longer than an address.
        form = path in ("query", "query_range")
        url = f"{self.url}/api/v1/{path}"
        with httpx.Client(timeout=_SECONDS, trust_env=False) as client:
            answer = client.post(url, data=parameters) if form else client.get(url, params=parameters)
        body = answer.json()
        if body["status"] != "success":
            raise QueryError(f"{body['errorType']}: {body['error']}\n{parameters.get('query', '')}")
        return body["data"]


def _series(data: Mapping[str, Any]) -> list[Series]:
    result = data["result"]
    if data["resultType"] == "scalar":
        return [Series({}, (_point(result),))]
    return [Series(entry["metric"], tuple(map(_point, entry.get("values") or [entry["value"]]))) for entry in result]


def _point(pair: tuple[float, str]) -> tuple[float, float]:
    return float(pair[0]), float(pair[1])
