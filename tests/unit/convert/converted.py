"""Runs the converter in this process, renders what it prints as the operator does, and asks vLLM's own parser."""

import contextlib
import io
import json
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from click.testing import CliRunner, Result

from dsd_operator.api import Spec, parse
from dsd_operator.render.arguments import engine_arguments
from dsd_operator.render.environment import engine_environment
from dsd_runtime.protocol import DRAIN_TIMEOUT_ENV
from dsd_runtime.serve import SHUTDOWN, split
from kubectl_dsd.convert.command import convert
from tests.unit.runtime_core.serve_parser import command_line

NGRAM = '{"method": "ngram", "num_speculative_tokens": 3}'
TABLE = "num_speculative_tokens_per_batch_size"


@dataclass
class Outcome:
    """What one run of the command said. `resource` is None where none was printed."""

    code: int
    stdout: str
    stderr: str
    resource: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)

    @property
    def spec(self) -> dict[str, Any]:
        """Of the resource; an AssertionError with the reason where there is none."""
        assert self.resource, self.stderr
        spec: dict[str, Any] = self.resource["spec"]
        return spec

    def noted(self, *words: str) -> bool:
        """Whether one note holds all of these words."""
        return any(all(word in note for word in words) for note in self.notes)

    def missed(self, *words: str) -> bool:
        """Whether one of the things that were not carried over is told with all of these words."""
        return any(all(word in lost for word in words) for lost in self.lost)


def run(*arguments: str, text: str | None = None) -> Result:
    """The command as it is, with `text` on stdin."""
    return CliRunner().invoke(convert, arguments, input=text, catch_exceptions=False)


def words(*line: str, options: Sequence[str] = ()) -> Outcome:
    """Convert a line that a shell has split."""
    return outcome(run("--allow-partial", *options, "-o", "json", "--", *line))


def text(content: str, *options: str) -> Outcome:
    """Convert a text from stdin."""
    return outcome(run("-f", "-", "--allow-partial", *options, "-o", "json", text=content))


def vllm(*arguments: str, options: Sequence[str] = ()) -> Outcome:
    """Convert `vllm serve acme/t ARGUMENTS…`."""
    return words("vllm", "serve", "acme/t", *arguments, options=options)


def speculative(config: Any, *arguments: str, options: Sequence[str] = ()) -> Outcome:
    """Convert `vllm serve acme/t --speculative-config CONFIG`."""
    value = config if isinstance(config, str) else json.dumps(config)
    return vllm("--speculative-config", value, *arguments, options=options)


def outcome(result: Result) -> Outcome:
    """The parts of what was printed."""
    if result.exit_code == 2:
        return Outcome(2, result.stdout, result.stderr)
    found = json.loads(result.stdout)
    assert found["resource"], result.stderr
    lines = {key: [f"{p['field']}: {p['message']}" for p in found[key]] for key in ("notes", "notCarriedOver")}
    return Outcome(
        result.exit_code,
        result.stdout,
        result.stderr,
        found["resource"],
        lines["notes"],
        lines["notCarriedOver"],
        found["secrets"],
    )


def rendered(resource: dict[str, Any]) -> list[str]:
    """The arguments that `vllm serve` gets in the pod: rendered by the operator, expanded by the kubelet, our own
    options taken out by dsd-serve, which adds the time to drain; where the resource names none, the operator's
    30 s take the place of vLLM's 0, and nothing is compared."""
    body = {**resource, "metadata": {"namespace": "default", **resource["metadata"]}}
    spec = parse(body).spec
    arguments = [word.replace("$$", "$") for word in engine_arguments(spec)]
    named = "drainTimeoutSeconds" in resource["spec"].get("rollout", {})
    return [*split(arguments).vllm, *([SHUTDOWN, _variable(spec, DRAIN_TIMEOUT_ENV)] if named else [])]


def _variable(spec: Spec, name: str) -> str:
    (value,) = [variable["value"] for variable in engine_environment(spec) if variable["name"] == name]
    return str(value)


def vllm_reads(arguments: Sequence[str]) -> Namespace | None:
    """What vLLM's own command line makes of the arguments; None where it refuses them."""
    try:
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            found: Namespace = command_line().parse_args(["serve", *arguments])
    except SystemExit:
        return None
    except (ValueError, IndexError, TypeError, AssertionError):
        return None  # vLLM's own preprocessing stops too
    return found


OWNED = ("host", "port", "api_key", "hf_token", "model_tag", "config", "dispatch_function", "subparser")
"""What the operator decides, or what is a secret; `model_tag` becomes `model`."""

FLAGS = {"spec_method": "method", "spec_model": "model", "spec_tokens": "num_speculative_tokens"}


def engine_view(read: Namespace) -> dict[str, Any]:
    """The engine that a parsed line means: the model wherever it stood, the speculative config in one form, without
    the table, which is in the schedule."""
    view = {key: value for key, value in vars(read).items() if key not in OWNED and key not in FLAGS}
    view["model"] = read.model_tag or read.model
    for name in ("kv_transfer_config", "ec_transfer_config"):
        if view.get(name) is not None:
            view[name].engine_id = None  # made up anew by each parser
    config = {k.replace("-", "_"): v for k, v in (read.speculative_config or {}).items() if v is not None}
    config |= {key: value for flag, key in FLAGS.items() if (value := getattr(read, flag)) is not None}
    config.pop(TABLE, None)
    view["speculative_config"] = config
    view["served_model_name"] = list(dict.fromkeys(read.served_model_name or []))
    return view


def same_engine(original: Sequence[str], resource: dict[str, Any]) -> None:
    """AssertionError unless the printed resource runs with the same engine arguments as the original line."""
    first, second = vllm_reads(original), vllm_reads(rendered(resource))
    assert first is not None, "vLLM does not take the original line"
    assert second is not None, f"vLLM does not take {rendered(resource)}"
    assert engine_view(second) == engine_view(first)
