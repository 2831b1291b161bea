"""The command `dsd-serve`: prepares the environment, then becomes `vllm serve`.

Takes its own `--dsd-*` options out of the command line and passes everything else on. Where the plugin does not know
the installed vLLM (`compat.gate`), it gives vLLM the schedule as its own static table instead.
"""

import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final, NoReturn

from dsd_runtime import compat, config_file, draining, follow, last_words, metrics_folder, resolved
from dsd_runtime.causes import known_cause
from dsd_runtime.convert.keys import TABLE_KEY, read_keys
from dsd_runtime.convert.methods import method_problem
from dsd_runtime.convert.numbers import whole
from dsd_runtime.convert.report import Report
from dsd_runtime.listen import check_free, default_host
from dsd_runtime.multiproc import MULTIPROC_DIR
from dsd_runtime.protocol import DRAIN_TIMEOUT_ENV, ConfigFile
from dsd_runtime.schedule import Problem, validate
from dsd_runtime.usage import UsageError
from dsd_runtime.vllm_arguments import before_values, speculative_config, uses, with_config_file, with_table

PLUGINS: Final = ("dsd", "dsd_http")
PLUGINS_ENV: Final = "VLLM_PLUGINS"
OTHER_PLUGIN_GROUPS: Final = (
    "vllm.general_plugins",
    "vllm.io_processor_plugins",
    "vllm.platform_plugins",
    "vllm.stat_logger_plugins",
)
"""Groups whose plugins vLLM loads unless VLLM_PLUGINS is set; endpoint plugins it loads only when named there."""

SHUTDOWN: Final = "--shutdown-timeout"
DRAIN_SECONDS: Final = 30
"""How long requests that are open at SIGTERM may go on, where nobody says. vLLM's own default is to abort them at
once."""

WAIT_FOR_LEADER: Final = "--dsd-wait-for-leader"

USAGE: Final = """\
usage: dsd-serve MODEL --speculative-config JSON [--dsd-config FILE] [options of vllm serve]

Serve a model with vLLM, with a schedule of speculative decoding that changes while the server runs.

options of dsd-serve:
  --dsd-config FILE           schedule (and who may change it), as YAML; followed while the server runs
  --dsd-prepared-tokens LIST  numbers of speculative tokens to prepare at start, such as 0,1,3
                              (default: 0..maximum up to a maximum of 4, else 0, 1, half, maximum)
  --shutdown-timeout SECONDS  vLLM's: how long open requests may go on after SIGTERM or Ctrl-C (default here: 30,
                              or DSD_DRAIN_TIMEOUT_SECONDS)
  --dsd-wait-for-leader       alone: serve nothing, and end when the leader of this worker's group has ended
  -h, --help                  show this; `vllm serve --help` shows the other options

environment:
  PROMETHEUS_MULTIPROC_DIR    folder for metrics, made and wiped at start (default: one among the temporary files)
  VLLM_PLUGINS                other plugins to load; ours are added to it

example:
  printf 'ranges:\\n- {startBatchSize: 1, endBatchSize: 8, numSpeculativeTokens: 3}\\n' > schedule.yaml
  dsd-serve Qwen/Qwen3-8B --dsd-config schedule.yaml \\
    --speculative-config '{"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4}'
  dsd schedule show
"""


@dataclass(frozen=True)
class Options:
    """The command line, taken apart: our own options, and what goes to vLLM."""

    vllm: tuple[str, ...]
    config: Path | None = None
    prepared: str | None = None


def split(arguments: Sequence[str]) -> Options:
    """Take our options out of `arguments`; raises UsageError."""
    own: dict[str, str] = {}
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        name, equals, value = word.partition("=")
        if name in ("--dsd-config", "--dsd-prepared-tokens"):
            own[name] = value if equals else next(words, "")
            if not own[name]:
                raise UsageError(f"{name} needs a value")
        elif name.startswith("--dsd-"):
            raise UsageError(f"there is no option {name}; see dsd-serve --help")
        elif name == "--config" and equals:
            # vLLM reads its own config file only where option and file are two words, and ignores this form silently.
            rest += ["--config", value]
        else:
            rest.append(word)
    path = own.get("--dsd-config")
    return Options(tuple(rest), Path(path).absolute() if path else None, own.get("--dsd-prepared-tokens"))


def check_speculative(arguments: Sequence[str], config: ConfigFile | None) -> None:
    """Refuse early what the engine would refuse after minutes of loading; raises UsageError."""
    speculative = speculative_config(arguments)
    if speculative is None:
        return  # a checkpoint may bring a config of its own
    check_names(speculative)
    if config is None:
        return
    if TABLE_KEY in speculative:
        raise UsageError(
            f"the schedule is given twice: in --dsd-config and as {TABLE_KEY}; remove the latter "
            "(`dsd schedule convert` makes a schedule file of it)"
        )
    maximum = whole(speculative.get("num_speculative_tokens"))
    problems = validate(config.ranges, maximum) if maximum is not None else []
    if problems:
        raise UsageError(f"the schedule cannot be used: {_text(problems)}")


def check_names(speculative: Mapping[str, Any]) -> None:
    """Refuse keys and methods that the vLLM we know has not, with the nearest name; raises UsageError.

    Another vLLM may have others.
    """
    if compat.gate().mode == "off":
        return
    report = Report()
    read_keys(speculative, report)
    method = speculative.get("method")
    if method is not None and (problem := method_problem(method)):
        report.problem("method", problem)
    if problems := report.problems + report.notes:  # a note is about an old name, which vLLM refuses too
        raise UsageError(f"the speculative config cannot be used: {_text(problems)}")


def _text(problems: Sequence[Problem]) -> str:
    return "; ".join(f"{p.field}: {p.message}" for p in problems)


def check_vllm(gate: compat.Gate, options: Options) -> None:
    """Refuse where vLLM is missing, or too old to take a schedule in any way; raises UsageError."""
    if not gate.vllm_version:
        raise UsageError(gate.reason)
    spec = importlib.util.find_spec("vllm")
    roots = spec.submodule_search_locations if spec else None
    table = f"SpeculativeConfig.{TABLE_KEY}"
    if gate.mode == "off" and options.config and (not roots or table in compat.missing_hooks(Path(roots[0]))):
        needed = " or ".join(f"{series}.x" for series in compat.SUPPORTED)
        raise UsageError(
            f"vLLM {gate.vllm_version} cannot take a schedule at all (it has no {TABLE_KEY}); vLLM {needed} is needed: "
            "pip install --upgrade 'dsd-runtime[vllm]'"
        )


def plugin_list(existing: str | None) -> str:
    """The value of VLLM_PLUGINS with ours in it. It is an allow-list for plugins of every kind: where the user sets
    none, it must name all that vLLM would load by itself."""
    if existing is None:
        names = [plugin.name for group in OTHER_PLUGIN_GROUPS for plugin in entry_points(group=group)]
    else:
        names = [name for name in existing.split(",") if name]
    return ",".join(dict.fromkeys([*names, *PLUGINS]))


def environment_for(options: Options, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of `vllm serve`."""
    changed = dict(environment)
    changed[PLUGINS_ENV] = plugin_list(environment.get(PLUGINS_ENV))
    changed[MULTIPROC_DIR] = metrics_folder.prepare(environment)
    for name, value in ((resolved.CONFIG_ENV, options.config), (resolved.PREPARED_ENV, options.prepared)):
        changed.pop(name, None)
        if value is not None:
            changed[name] = str(value)
    return changed


def arguments_for(options: Options) -> list[str]:
    """The arguments of `vllm serve`; raises UsageError or ConfigFileError."""
    arguments = list(options.vllm)
    if not arguments:
        raise UsageError("name a model: dsd-serve MODEL …; see dsd-serve --help")
    if options.prepared is not None:
        try:
            resolved.parse_prepared(options.prepared)
        except ValueError as error:
            raise UsageError(f"--dsd-prepared-tokens {options.prepared}: {error}") from error
    config = config_file.read(options.config) if options.config is not None else None
    check_speculative(arguments, config)
    if config is not None and compat.gate().mode == "off":
        arguments = with_table(arguments, config.ranges)
    return before_values(arguments, defaults(arguments))


def drain_seconds(environment: Mapping[str, str]) -> int:
    """How long open requests may go on after SIGTERM; raises UsageError."""
    text = environment.get(DRAIN_TIMEOUT_ENV, str(DRAIN_SECONDS))
    if not text.isdecimal():
        raise UsageError(f"{DRAIN_TIMEOUT_ENV}={text}: it must be a whole number of seconds, 0 or more")
    return int(text)


def defaults(arguments: Sequence[str]) -> list[str]:
    """What we add where the user says nothing about it, on the command line or in vLLM's own config file."""
    given = {use.canonical for use in uses(with_config_file(arguments))}
    host = [] if given & {"--host", "--uds"} else ["--host", default_host()]
    # A vLLM that we do not know may not know the option.
    drains = SHUTDOWN not in given and compat.gate().mode == "on"
    return [*([SHUTDOWN, str(drain_seconds(os.environ))] if drains else []), *host]


def say(text: str) -> None:
    """A line for the person at the terminal."""
    print(f"dsd-serve: {text}", file=sys.stderr, flush=True)


def command_for(arguments: Sequence[str]) -> list[str]:
    """The command line of `vllm serve`.

    The module, not the script `vllm`: it is the vLLM of this interpreter, whatever PATH says. `-P` keeps the working
    directory off the module path, as for a script: a folder `vllm` in it would be imported instead.
    """
    return [sys.executable, "-P", "-m", "vllm.entrypoints.cli.main", "serve", *arguments]


def run(words: Sequence[str]) -> NoReturn:
    """Become `vllm serve`."""
    options = split(words)
    gate = compat.gate()
    check_vllm(gate, options)
    arguments = arguments_for(options)
    check_free(arguments)
    if (notice := draining.notice()) is not None:
        draining.forget(notice)
    if gate.mode == "off":
        say(f"{gate.reason}; serving with a static schedule, which changes only with a restart")
    environment = environment_for(options, os.environ)
    os.execve(sys.executable, command_for(arguments), environment)


def main() -> NoReturn:
    """Entry point of `dsd-serve`."""
    words = sys.argv[1:]
    if "-h" in words or "--help" in words:
        print(USAGE, end="")
        sys.exit(0)
    try:
        if words == [WAIT_FOR_LEADER]:
            follow.wait_for_leader()
            sys.exit(0)
        run(words)
    except (UsageError, config_file.ConfigFileError) as error:
        say(str(error))
        text = f"dsd-serve: {error}"
        cause = known_cause(text)
        last_words.say(text, cause.reason if cause is not None else None)
        sys.exit(2)
