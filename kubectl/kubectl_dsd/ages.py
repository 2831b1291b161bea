"""Times as people read them: how long ago, in kubectl's short form."""

from datetime import UTC, datetime


def parse(time: str | None) -> datetime | None:
    """A time of Kubernetes (RFC 3339); None for none, or for what is not one."""
    try:
        found = datetime.fromisoformat(time) if time else None
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found and found.tzinfo is None else found


def age(time: str | None, now: datetime | None = None) -> str:
    """`45s`, `12m`, `3h5m`, `2d4h`; a question mark where there is no time."""
    then = parse(time)
    if then is None:
        return "?"
    seconds = max(0, int(((now or datetime.now(UTC)) - then).total_seconds()))
    if seconds < 120:
        return f"{seconds}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if hours < 3:
        return f"{minutes}m"
    if days < 2:
        return f"{hours}h{minutes % 60}m"
    return f"{days}d{hours % 24}h" if days < 8 else f"{days}d"
