"""Runs the commands of a page as its reader would: one bash, in an empty folder beside a checkout."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.docs.blocks import Block, outputs
from tools.cluster.api import kubectl, program
from tools.cluster.paths import REPOSITORY, cache_root
from tools.monitoring.programs import promtool

SECONDS: Final = 240
_MARK: Final = "\x1e"
"""ASCII's record separator, printed after each block: no command prints it."""


@dataclass(frozen=True)
class Session:
    """A folder and an environment. `replaced` are texts of the pages that are others here (a port, a name),
    `prelude` is run before the page."""

    folder: Path
    kubeconfig: Path | None = None
    replaced: Mapping[str, str] = field(default_factory=dict)
    prelude: str = ""

    def run(self, page: Sequence[Block]) -> None:
        """Run the commands of `page` in order; AssertionError with the block's place where one fails, or where its
        output is not what the page shows."""
        wanted = [block for block in page if block.comment != "output"]
        if not wanted:
            return
        _link_checkout(self.folder)
        printed = self._bash("\n".join([self.prelude, *map(self._script, wanted)])).split(_MARK)
        for block, text in zip(wanted, printed, strict=False):
            assert len(printed) > len(wanted) or block is not wanted[len(printed) - 1], f"{block.where}: {text}"
        shown = outputs(list(page))
        for block, text in zip(wanted, printed, strict=False):
            if block in shown:
                missing = missing_lines(self._replace(shown[block].text), text)
                assert not missing, f"{shown[block].where}: not in the output: {missing}\nIt is:\n{text}"

    def _script(self, block: Block) -> str:
        text = self._replace(block.text)
        if block.fails:
            text = f"if (\n{text}\n); then echo 'this must fail'; exit 97; fi"
        return f"{text}\nprintf '{_MARK}'"

    def _replace(self, text: str) -> str:
        for old, new in self.replaced.items():
            text = re.sub(old, new, text)
        return text

    def _bash(self, script: str) -> str:
        """What it prints, errors too. Whatever it left in the background ends with it."""
        command = ["bash", "-euo", "pipefail", "-c", script]
        with (self.folder / ".output").open("w+", encoding="utf-8") as output:
            shell = subprocess.Popen(
                command, cwd=self.folder, env=self._environment(), start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip
            try:
                shell.wait(SECONDS)
            finally:
                _end_group(shell.pid)
                shell.wait()
            output.seek(0)
            return output.read()

    def _environment(self) -> dict[str, str]:
        folders = [self.folder / "bin", Path(sys.executable).parent, kubectl().parent, program("helm").parent]
        folders.append(promtool().parent)
        # HOME is the folder, so that nobody's configuration counts; the caches of the tools stay where they are.
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("DSD_", "KUBE", "HELM_", "PYTHON"))}
        path = ":".join(str(folder) for folder in folders)
        more = {"KUBECONFIG": str(self.kubeconfig or "/dev/null"), "COLUMNS": "120"}
        more["XDG_CACHE_HOME"] = str(cache_root().parent)
        return kept | more | {"PATH": f"{path}:{os.environ['PATH']}", "HOME": str(self.folder)}


def _end_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return  # nothing was left


def _link_checkout(folder: Path) -> None:
    for path in REPOSITORY.iterdir():
        target = folder / path.name
        if not path.name.startswith(".") and not target.exists():
            target.symlink_to(path)


def missing_lines(shown: str, printed: str) -> list[str]:
    """Lines of a page's output that are in no printed line: white space is loose, and … stands for anything."""
    found = [" ".join(line.split()) for line in printed.splitlines()]
    return [line for line in shown.splitlines() if line.strip() and not any(_fits(line, each) for each in found)]


def _fits(shown: str, printed: str) -> bool:
    parts = [re.escape(" ".join(part.split())) for part in shown.split("…")]
    return re.search(r".*".join(parts), printed) is not None
