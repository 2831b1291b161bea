"""A model hub on this machine: as much of the Hugging Face hub's HTTP API as its own client needs to download models.

It counts what it is asked, so that a test can tell whether an engine downloaded anything. The routes are those that
huggingface_hub 1.x calls (`HfApi.repo_info`, `list_repo_tree`, `hf_hub_download`).
"""

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

COMMIT: Final = "0123456789abcdef0123456789abcdef01234567"
"""The one revision of every model."""


@dataclass
class Hub:
    """`models` by their id, each a directory of files; `asked` has the method and the path of every request."""

    models: Mapping[str, Path]
    address: str = ""
    asked: list[str] = field(default_factory=list)

    def downloads(self) -> list[str]:
        """Paths of the files that were sent."""
        return [entry.removeprefix("GET ") for entry in self.asked if entry.startswith("GET ") and "/resolve/" in entry]


@contextmanager
def hub(models: Mapping[str, Path], host: str = "127.0.0.1") -> Iterator[Hub]:
    """A hub that serves `models` inside the block; its address goes into HF_ENDPOINT."""
    made = Hub(models)
    handler = type("Handler", (_Handler,), {"hub": made})
    with ThreadingHTTPServer((host, 0), handler) as server:
        server.daemon_threads = True
        made.address = f"http://{host}:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def log_message(self, *_: object) -> None:
        """Nothing: the test says what it saw."""

    def _answer(self, with_body: bool) -> None:
        path = unquote(urlsplit(self.path).path).strip("/")
        self.hub.asked.append(f"{self.command} /{path}")
        status, headers, body = _find(self.hub.models, path)
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body)), "X-Repo-Commit": COMMIT}.items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)


Answer = tuple[int, dict[str, str], bytes]


def _find(models: Mapping[str, Path], path: str) -> Answer:
    for model, directory in models.items():
        if path == f"api/models/{model}" or path.startswith(f"api/models/{model}/revision/"):
            return _json({"id": model, "sha": COMMIT, "siblings": [{"rfilename": f.name} for f in _files(directory)]})
        if path.startswith(f"api/models/{model}/tree/"):
            return _json([_entry(file) for file in _files(directory)])
        if path.startswith(f"{model}/resolve/"):
            return _file(directory / Path(path).name)
    return 404, {"X-Error-Code": "RepoNotFound"}, b"{}"


def _file(file: Path) -> Answer:
    if not file.is_file():
        return 404, {"X-Error-Code": "EntryNotFound"}, b"{}"
    return 200, {"ETag": f'"{_digest(file)}"', "Content-Type": "application/octet-stream"}, file.read_bytes()


def _files(directory: Path) -> list[Path]:
    return sorted(file for file in directory.iterdir() if file.is_file())


def _entry(file: Path) -> dict[str, Any]:
    return {"type": "file", "path": file.name, "size": file.stat().st_size, "oid": _digest(file)}


def _digest(file: Path) -> str:
    return hashlib.sha1(file.read_bytes(), usedforsecurity=False).hexdigest()


def _json(content: object) -> Answer:
    return 200, {"Content-Type": "application/json"}, json.dumps(content).encode()
