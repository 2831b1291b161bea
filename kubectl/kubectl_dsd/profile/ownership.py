"""Who owns `spec.schedule` by server-side apply, before a profile and after it. Pure, over `metadata.managedFields`.

A change makes this command the owner of the schedule, and the next `kubectl apply --server-side` of its real owner
would end in a conflict. So the old owners are written back with the old schedule. The API server takes managedFields
from whoever may write the object, if nothing else changes with them.
"""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any, Final

from kubectl_dsd.cluster import FIELD_MANAGER

Entry = dict[str, Any]
FIELD: Final = "f:schedule"


def schedule_owners(resource: Mapping[str, Any]) -> list[Entry]:
    """The entries that own the schedule."""
    return [entry for entry in _entries(resource) if FIELD in _spec(entry)]


def last_change_by(resource: Mapping[str, Any]) -> str:
    """The manager that last wrote the schedule, rather another one than this command; "somebody" where none says so."""
    latest = max(schedule_owners(resource), key=lambda e: (str(e.get("time", "")), not _is_ours(e)), default={})
    return str(latest.get("manager") or "somebody")


def given_back(present: Mapping[str, Any], original: Mapping[str, Any]) -> list[Entry] | None:
    """managedFields of `present` with the owners of the schedule that `original` had; None where they are the same."""
    wanted = schedule_owners(original)
    if set(map(_key, schedule_owners(present))) == set(map(_key, wanted)):
        return None
    kept = [entry for entry in map(_without, _entries(present)) if entry["fieldsV1"]]
    for owner in wanted:
        _owning(kept, owner).setdefault("f:spec", {})[FIELD] = _spec(owner)[FIELD]
    return kept


def _owning(entries: list[Entry], owner: Mapping[str, Any]) -> Entry:
    """The fields of the entry of `owner`, which is added where it has gone."""
    for entry in entries:
        if _key(entry) == _key(owner):
            fields: Entry = entry["fieldsV1"]
            return fields
    entries.append({**deepcopy(dict(owner)), "fieldsV1": {}})
    added: Entry = entries[-1]["fieldsV1"]
    return added


def _without(entry: Entry) -> Entry:
    """A copy that does not own the schedule, nor an empty spec."""
    copy = deepcopy(entry)
    spec = copy.setdefault("fieldsV1", {}).get("f:spec") or {}
    spec.pop(FIELD, None)
    if not spec:
        copy["fieldsV1"].pop("f:spec", None)
    return copy


def _entries(resource: Mapping[str, Any]) -> Iterable[Entry]:
    found: Iterable[Entry] = resource["metadata"].get("managedFields") or ()
    return found


def _spec(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (entry.get("fieldsV1") or {}).get("f:spec") or {}
    return found


def _key(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(entry.get(part, "")) for part in ("manager", "operation", "apiVersion", "subresource"))


def _is_ours(entry: Mapping[str, Any]) -> bool:
    return entry.get("manager") == FIELD_MANAGER
