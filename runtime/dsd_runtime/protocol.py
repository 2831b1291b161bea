"""What operator and engine say to each other: the config file, the HTTP bodies and the problem documents.

Pure pydantic models, camelCase on the wire. The operator renders `ConfigFile` into a ConfigMap and sends
`SchedulePut`; the routes answer with `EngineStatus` or `ProblemDocument` (RFC 9457).
"""

from typing import Any, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from dsd_runtime.schedule import MAX_RANGES, ScheduleRange, Smoothing

STATUS_PATH: Final = "/dsd/v1/status"
SCHEDULE_PATH: Final = "/dsd/v1/schedule"
HISTORY_PATH: Final = "/dsd/v1/history"
READY_PATH: Final = "/health?schedule=in-place"
"""vLLM's health, and the config file's schedule in use from the start: what a readiness probe asks. A query, because a
server that does not know it answers with its health alone."""

DRAIN_TIMEOUT_ENV: Final = "DSD_DRAIN_TIMEOUT_SECONDS"
"""How long open requests may go on after SIGTERM, where the command line does not say; seconds."""

LEAVING_ENV: Final = "DSD_LEAVING_FILE"
"""Path of the file that announces, before SIGTERM, that the server is about to end. Something outside makes it."""

PROBLEM_CONTENT_TYPE: Final = "application/problem+json"
CONFIG_FILE_NAME: Final = "config.yaml"
MAX_BODY_BYTES: Final = 64 * 1024
"""Largest PUT body; 32 ranges take about 3 KiB."""


class Wire(BaseModel):
    """Base of everything on the wire: frozen, camelCase, unknown fields refused, no coercion."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, alias_generator=to_camel, populate_by_name=True)

    def dump(self) -> dict[str, Any]:
        """JSON-ready dict in wire spelling, unset optionals left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class Revision(Wire):
    """Which schedule is newer: the higher `number` wins, whichever way it came.

    `owner` names the resource it belongs to (`namespace/name/uid`). Numbers never go back for one engine: the operator
    takes the maximum of what the file and the pods hold plus one, and at least the milliseconds since the epoch, so
    that a deleted and re-created resource, an orphaned ConfigMap or a restored backup still ends above what runs.
    """

    owner: str = Field(min_length=1, max_length=512)
    number: int = Field(ge=1, le=2**53 - 1)


class TokenReviewAuth(Wire):
    """Offline check of a service-account token: all four must fit."""

    issuer: str
    audience: str
    subject: str
    jwks: dict[str, Any]


class TokenFileAuth(Wire):
    """Without Kubernetes: the bearer token must equal the content of this file."""

    token_file: str


class ConfigFile(Wire):
    """The mounted config file. Without `revision` (edited by hand) every change of the content counts as newer.

    Without `smoothing`, K follows the ranges step by step. Without `auth`, writing over HTTP is off.
    """

    revision: Revision | None = None
    ranges: tuple[ScheduleRange, ...] = Field(min_length=1, max_length=MAX_RANGES)
    smoothing: Smoothing | None = None
    auth: TokenReviewAuth | TokenFileAuth | None = None


class SchedulePut(Wire):
    """Body of `PUT /dsd/v1/schedule`. It says everything: a PUT without `smoothing` turns smoothing off."""

    revision: Revision
    ranges: tuple[ScheduleRange, ...] = Field(min_length=1, max_length=MAX_RANGES)
    smoothing: Smoothing | None = None


class Versions(Wire):
    """Versions inside the pod."""

    runtime: str
    vllm: str


class Envelope(Wire):
    """What was fixed when the engine started; only a restart changes it. As vLLM resolved it, not as it was asked."""

    method: str
    model_runner: Literal["V1", "V2"]
    num_speculative_tokens: int
    max_num_seqs: int
    parallel_drafting: bool = False
    drafter_max_model_len: int | None = None
    prepared_tokens: tuple[int, ...] = ()
    allowed_tokens: tuple[int, ...] = ()
    verify_only: bool = False
    """True: the method honours K for verification only; the drafter still pays for the maximum."""


class ScheduleState(Wire):
    """The schedule in use. `revision` is None for the start-up table and for a hand-edited file without one.

    `hash` is over ranges and smoothing (`schedule.schedule_hash`).
    """

    revision: Revision | None = None
    hash: str
    source: Literal["start", "file", "http"]
    ranges: tuple[ScheduleRange, ...]
    smoothing: Smoothing | None = None


class EngineCoreState(Wire):
    """One engine core's own view."""

    engine: int
    schedule: ScheduleState
    num_speculative_tokens: int
    """K chosen in the latest step that had requests; the maximum before the first one."""
    steps: int


class ErrorState(Wire):
    """The latest schedule that was refused, and why. `time` is RFC 3339 UTC."""

    source: Literal["start", "file", "http"]
    message: str
    time: str


FaultSource = Literal["file", "metrics"]
FAULT_SOURCES: Final[tuple[FaultSource, ...]] = get_args(FaultSource)


class Fault(Wire):
    """Something that is wrong now, while the engine serves. It goes when its cause does.

    `file`: the config file is not followed. `metrics`: some series are missing from /metrics, or out of date. `since`
    is RFC 3339 UTC.
    """

    source: FaultSource
    message: str
    since: str


class EngineStatus(Wire):
    """Body of `GET /dsd/v1/status` and of a successful PUT."""

    mode: Literal["on", "off"]
    versions: Versions
    envelope: Envelope | None = None
    schedule: ScheduleState | None = None
    engines: tuple[EngineCoreState, ...] = ()
    faults: tuple[Fault, ...] = ()
    last_error: ErrorState | None = None


class PastSchedule(Wire):
    """A schedule and when it came into use (RFC 3339 UTC)."""

    time: str
    schedule: ScheduleState


class EngineCoreHistory(Wire):
    """What one engine core has used since `started`, the oldest first.

    `forgotten` counts the changes since then that are no longer among `changes`; what was before is not known at all.
    """

    engine: int
    started: str
    forgotten: int
    changes: tuple[PastSchedule, ...]


class EngineHistory(Wire):
    """Body of `GET /dsd/v1/history`. With `mode` off there is nothing to tell."""

    mode: Literal["on", "off"]
    engines: tuple[EngineCoreHistory, ...] = ()


class FieldProblem(Wire):
    """One field that was refused."""

    field: str
    message: str


class ProblemDocument(Wire):
    """RFC 9457 problem document; `type` is a stable identifier, not an address to open."""

    type: str
    title: str
    status: int
    detail: str
    errors: tuple[FieldProblem, ...] = ()
