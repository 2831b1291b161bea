"""The config file: reading it, and watching it for changes.

In a pod it is a mounted ConfigMap, which the kubelet replaces by switching a symbolic link; elsewhere it is a file that
somebody edits. Both are followed by comparing the content about once a second: no inotify, which sees neither the
switch of a link nor a change on a network file system. `engine` applies what is read, `routes` takes the auth part.
"""

import hashlib
import json
import logging
import stat
import threading
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import ValidationError

from dsd_runtime import explain
from dsd_runtime.protocol import ConfigFile

logger = logging.getLogger("vllm.dsd.config_file")

MAX_FILE_BYTES: Final = 1024 * 1024
"""Largest config file; a ConfigMap cannot be larger."""

POLL_SECONDS: Final = 1.0


class ConfigFileError(Exception):
    """The file cannot be used; the text says where and why."""


class _Loader(yaml.SafeLoader):
    """YAML without two traps: a key that is given twice (PyYAML takes the last one without a word), and aliases (a few
    lines of them unfold to more than the memory holds)."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.composer.ComposerError(None, None, "aliases are not supported")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable):
                if key in seen:
                    raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is given twice", node.start_mark)
                seen.add(key)
        return super().construct_mapping(node, deep)


def load_yaml(content: bytes) -> Any:
    """The plain data of a YAML (hence JSON) text, all of it expressible as JSON; raises ConfigFileError."""
    if len(content) > MAX_FILE_BYTES:
        raise ConfigFileError(f"larger than {MAX_FILE_BYTES} bytes")
    try:
        data = yaml.load(content, Loader=_Loader)
        json.dumps(data, allow_nan=False)
    except Exception as error:  # PyYAML lets pass what its constructors run into: IndexError, OverflowError, …
        raise ConfigFileError(f"not valid YAML: {explain.yaml_error(error)}") from error
    return data


def parse(content: bytes) -> ConfigFile:
    """Parse the content of a config file (YAML, hence JSON too); raises ConfigFileError."""
    data = load_yaml(content)
    if not isinstance(data, dict):
        raise ConfigFileError("must be a mapping with the keys ranges, and optionally revision, smoothing and auth")
    try:
        # Through JSON, because strict pydantic models take a JSON array for a tuple, and no Python list.
        return ConfigFile.model_validate_json(json.dumps(data))
    except ValidationError as error:
        details = "; ".join(f"{field or 'file'}: {message}" for field, message, _ in explain.field_errors(error))
        raise ConfigFileError(details) from error


def read_bytes(path: Path) -> bytes:
    """The raw content; raises ConfigFileError when the file cannot be read."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigFileError("is not a regular file")  # reading a pipe may never end, and takes its content away
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigFileError(f"cannot be read: {error.strerror}") from error


def read(path: Path) -> ConfigFile:
    """Read and parse; raises ConfigFileError with the path in the text."""
    try:
        return parse(read_bytes(path))
    except ConfigFileError as error:
        raise ConfigFileError(f"config file {path}: {error}") from error


class Watcher:
    """Follows one file in a daemon thread of its own.

    `apply` gets each new content that parses, and answers why it is refused, if it is. `report` gets each new reason
    why the file is not followed (the schedule in use stays), and None once it is again. Both are called from the
    thread, never twice for one content or one reason, however often the file is looked at.
    """

    def __init__(
        self, path: Path, apply: Callable[[ConfigFile], str | None], report: Callable[[str | None], None]
    ) -> None:
        self._path = path
        self._apply = apply
        self._report = report
        self._seen = b""
        self._refused: str | None = None
        self._broken = b""
        self._unusable: str | None = None
        self._fault: str | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dsd-config-file", daemon=True)

    def start(self) -> None:
        """Begin to poll."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, after the look it may be taking; waits for nothing, a file system may hang."""
        self._stop.set()

    def again(self) -> None:
        """Apply the content once more with the next look, though it has not changed: what it was judged by has."""
        self._seen = b""

    def poll(self) -> None:
        """Look once; does nothing when the content is the one seen last."""
        try:
            content = read_bytes(self._path)
        except ConfigFileError as error:
            self._set_fault(str(error))
            return
        digest = hashlib.sha256(content).digest()
        if digest not in (self._seen, self._broken):
            self._look_at(content, digest)
        self._set_fault(self._unusable if digest == self._broken else self._refused)

    def _look_at(self, content: bytes, digest: bytes) -> None:
        """Parse a content once, whether or not it can be used: a large one takes seconds, in which the engine core
        has half of its time."""
        try:
            config = parse(content)
        except ConfigFileError as error:
            self._broken, self._unusable = digest, str(error)
            return
        self._seen = digest
        self._refused = self._apply(config)

    def _set_fault(self, reason: str | None, *, trace: bool = False) -> None:
        fault = f"config file {self._path}: {reason}" if reason is not None else None
        if fault == self._fault:
            return
        if fault is not None:
            logger.error("%s; the schedule in use stays", fault, exc_info=trace)
        else:
            logger.warning("config file %s: good again", self._path)
        self._fault = fault
        self._report(fault)

    def _run(self) -> None:
        while not self._stop.wait(POLL_SECONDS):
            try:
                self.poll()
            except Exception as error:
                self.again()
                self._set_fault(f"following it failed: {error!r}", trace=True)
