"""The engines of a benchmark, each in a process of its own, of which one at a time works: the parent side of
`runtime_engine`.

All live in one process tree and are loaded with the same machine in the same minutes, so that a ratio within one round
holds although the machine drifts.
"""

import multiprocessing
import tempfile
from collections.abc import Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from bench.runtime_engine import EngineSpec, Run, Triples, serve
from bench.runtime_workloads import Task

STOP_SECONDS: Final = 30.0


class EngineError(RuntimeError):
    """An engine failed; the text has the end of its log."""


class Member:
    """One engine process."""

    def __init__(self, spec: EngineSpec, folder: Path) -> None:
        self.spec = spec
        self._log = folder / f"{spec.name}.log"
        context = multiprocessing.get_context("spawn")
        self._pipe: Connection
        self._pipe, child = context.Pipe()
        self._process: BaseProcess = context.Process(target=serve, args=(child, spec, self._log), daemon=True)
        self._process.start()
        child.close()

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of `runtime_engine.Driven`; the first call starts the engine. Raises EngineError."""
        try:
            self._pipe.send((method, arguments))
            error, result = self._pipe.recv()
        except (EOFError, OSError) as lost:
            raise EngineError(f"engine {self.spec.name} ended: {lost!r}\n{self._tail()}") from lost
        if error is not None:
            raise EngineError(f"engine {self.spec.name}: {error}\n{self._tail()}")
        return result

    def run(self, tasks: Sequence[Task], concurrency: int) -> Run:
        """Serve `tasks`, so many at once."""
        result: Run = self.call("run", tasks, concurrency)
        return result

    def stop(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join(STOP_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _tail(self) -> str:
        return self._log.read_text(errors="replace")[-4000:] if self._log.exists() else ""


class Pool:
    """Engines by name; ends them all when it is left."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.members: dict[str, Member] = {}

    def start(self, spec: EngineSpec) -> Member:
        """Start an engine, in the place of the one with that name if there is one."""
        if old := self.members.pop(spec.name, None):
            old.stop()
        member = self.members[spec.name] = Member(spec, Path(self._folder.name))
        member.call("versions")
        return member

    def put(self, name: str, table: Triples) -> None:
        """Change the schedule of an engine with the plugin, in place."""
        self.members[name].call("put", table)

    def __getitem__(self, name: str) -> Member:
        return self.members[name]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self.members.values():
            member.stop()
        self._folder.cleanup()
