"""What an API server that is behind would answer: reads as of an earlier resourceVersion.

The API server itself knows its past: LIST takes `resourceVersionMatch=Exact`. A GET becomes a LIST of one name, asked
by the administrator, because the operator may not list every kind that it may get.
"""

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from tests.faults.calls import Call


@dataclass(frozen=True)
class Snapshot:
    """The cluster as of a resourceVersion."""

    version: str

    def address(self, call: Call) -> str:
        """Path and query that ask for it."""
        exact = {"resourceVersion": self.version, "resourceVersionMatch": "Exact"}
        name = call.parts[2]
        if name is None:
            query = dict(call.query) if "continue" in call.query else {**call.query, **exact}
            return f"{call.path}?{urlencode(query)}"
        collection = call.path.rpartition("/")[0]
        return f"{collection}?{urlencode({'fieldSelector': f'metadata.name={name}', **exact})}"

    def headers(self, call: Call, own: dict[str, Any]) -> dict[str, Any]:
        """Without the operator's token for a GET: the connection then speaks for the administrator."""
        return {"Accept": "application/json"} if call.parts[2] is not None else own

    def answer(self, call: Call, status: int, body: bytes) -> web.Response:
        """The answer that the request wanted."""
        name = call.parts[2]
        if name is None or status != 200:
            return web.Response(status=status, body=body, content_type="application/json")
        found = json.loads(body)
        if not found["items"]:
            return web.json_response(_not_found(call, name), status=404)
        kind = {"apiVersion": found["apiVersion"], "kind": found["kind"].removesuffix("List")}
        return web.json_response({**kind, **found["items"][0]})


def _not_found(call: Call, name: str) -> dict[str, Any]:
    message = f'{call.plural} "{name}" not found'
    details = {"name": name, "kind": call.plural}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
            "reason": "NotFound", "details": details, "code": 404}  # fmt: skip
