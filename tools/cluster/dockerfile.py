"""Which files of the repository a Dockerfile's target is made of, so that a change of others builds nothing.

Reads the instructions this project uses: ARG, FROM, COPY. Paths may be files or directories, not patterns.
"""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field

from tools.cluster.errors import ClusterError


@dataclass
class Stage:
    """One FROM with what follows it: the stages it builds on, and the paths it copies from the build context."""

    name: str
    base: str
    text: str
    copies_from: set[str] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Inputs:
    """All that goes into a target: instructions, and paths relative to the repository."""

    text: str
    paths: frozenset[str]


def inputs(text: str, target: str) -> Inputs:
    """The inputs of ``target`` and of every stage below it. Raises ClusterError if there is no such target."""
    head, stages = _parse(text)
    if target not in stages:
        raise ClusterError(f"the Dockerfile has no target {target!r}; it has {', '.join(stages)}")
    wanted: dict[str, Stage] = {}
    todo = [target]
    while todo:
        name = todo.pop()
        if name in stages and name not in wanted:
            wanted[name] = stages[name]
            todo += [stages[name].base, *stages[name].copies_from]
    ordered = [stage for name, stage in stages.items() if name in wanted]
    paths = frozenset(path for stage in ordered for path in stage.paths)
    return Inputs("\n".join([*head, *(stage.text for stage in ordered)]), paths)


def _parse(text: str) -> tuple[list[str], dict[str, Stage]]:
    head: list[str] = []
    stages: dict[str, Stage] = {}
    current: Stage | None = None
    for line in _instructions(text):
        words = shlex.split(line)
        keyword = words[0].upper()
        if keyword == "FROM":
            current = _stage(words, len(stages))
            stages[current.name] = current
        if current is None:
            head.append(line)
            continue
        current.text += f"{line}\n"
        if keyword in ("COPY", "ADD"):
            _add_copy(current, words[1:])
    return head, stages


def _stage(words: list[str], number: int) -> Stage:
    plain = [word for word in words[1:] if not word.startswith("--")]
    name = plain[2] if len(plain) > 2 and plain[1].lower() == "as" else str(number)
    return Stage(name=name, base=plain[0], text="")


def _add_copy(stage: Stage, words: list[str]) -> None:
    options = [word for word in words if word.startswith("--")]
    sources = [word for word in words if not word.startswith("--")][:-1]
    origin = next((option.partition("=")[2] for option in options if option.startswith("--from=")), None)
    if origin is not None:
        stage.copies_from.add(origin)
        return
    if any(set("*?[$") & set(source) for source in sources):
        raise ClusterError(f"the Dockerfile copies a pattern ({' '.join(sources)}); name files and directories instead")
    stage.paths.update(source.rstrip("/").removeprefix("./") for source in sources)


def _instructions(text: str) -> Iterable[str]:
    """Instructions on one line each, without comments."""
    pending = ""
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        pending += stripped.removesuffix("\\")
        if not stripped.endswith("\\"):
            yield pending
            pending = ""
    if pending:
        yield pending
