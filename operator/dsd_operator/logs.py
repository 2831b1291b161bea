"""Logging: JSON lines or text. Every line written while a resource is being worked on says which one."""

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Final, Literal

_resource: ContextVar[tuple[str, str] | None] = ContextVar("resource", default=None)

_QUIET: Final = {
    "kopf.objects": logging.WARNING,  # two lines for each event of each watched object
    "kopf._core": logging.WARNING,
    "aiohttp.access": logging.WARNING,
    "asyncio": logging.WARNING,
}


@contextmanager
def about(namespace: str, name: str) -> Iterator[None]:
    """Mark every line logged inside, also by tasks started inside, with this resource."""
    token = _resource.set((namespace, name))
    try:
        yield
    finally:
        _resource.reset(token)


def configure(log_format: Literal["json", "text"], level: str) -> None:
    """Set up the root logger. Lines go to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_mark)
    handler.setFormatter(_Json() if log_format == "json" else _Text())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name, least in _QUIET.items():
        logging.getLogger(name).setLevel(max(least, logging.getLevelName(level)))


def _mark(record: logging.LogRecord) -> bool:
    """Attach namespace and name: ours, or those that kopf's object loggers carry."""
    foreign = getattr(record, "k8s_ref", None) or {}
    namespace, name = _resource.get() or (foreign.get("namespace"), foreign.get("name"))
    record.__dict__.update(resource_namespace=namespace, resource_name=name)
    return True


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields = record.__dict__
        if fields.get("resource_name") is not None:
            line |= {"namespace": fields["resource_namespace"], "name": fields["resource_name"]}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = record.__dict__
        name = fields.get("resource_name")
        where = f" [{fields['resource_namespace']}/{name}]" if name is not None else ""
        text = f"{_time(record)} {record.levelname:<7} {record.name}{where}: {record.getMessage()}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text
