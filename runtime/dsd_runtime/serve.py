"""The command `dsd-serve`: prepares the environment, then becomes `vllm serve`.

Takes its own `--dsd-*` options out of the command line and passes everything else on. Where the plugin does not know
the installed vLLM (`compat.gate`), it gives vLLM the schedule as its own static table instead.
"""

import json
import os
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final, NoReturn

import yaml

from dsd_runtime import compat, config_file, resolved
from dsd_runtime.multiproc import MULTIPROC_DIR
from dsd_runtime.options import resolve
from dsd_runtime.protocol import ConfigFile
from dsd_runtime.schedule import to_triples, validate

PLUGINS: Final = ("dsd", "dsd_http")
PLUGINS_ENV: Final = "VLLM_PLUGINS"
OTHER_PLUGIN_GROUPS: Final = (
    "vllm.general_plugins",
    "vllm.io_processor_plugins",
    "vllm.platform_plugins",
    "vllm.stat_logger_plugins",
)
"""Groups whose plugins vLLM loads unless VLLM_PLUGINS is set; endpoint plugins it loads only when named there."""

TABLE_KEY: Final = "num_speculative_tokens_per_batch_size"
USAGE: Final = """\
usage: dsd-serve MODEL --speculative-config JSON [--dsd-config FILE] [options of vllm serve]

Serve a model with vLLM, with a schedule of speculative decoding that changes while the server runs.

options of dsd-serve:
  --dsd-config FILE           schedule (and who may change it), as YAML; followed while the server runs
  --dsd-prepared-tokens LIST  numbers of speculative tokens to prepare at start, such as 0,1,3
                              (default: 0..maximum up to a maximum of 4, else 0, 1, half, maximum)
  -h, --help                  show this; `vllm serve --help` shows the other options

environment:
  PROMETHEUS_MULTIPROC_DIR    folder for metrics, made and wiped at start (default: a new temporary one)
  VLLM_PLUGINS                other plugins to load; ours are added to it

example:
  printf 'ranges:\\n- {startBatchSize: 1, endBatchSize: 8, numSpeculativeTokens: 3}\\n' > schedule.yaml
  dsd-serve Qwen/Qwen3-8B --dsd-config schedule.yaml \\
    --speculative-config '{"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4}'
  curl localhost:8000/dsd/v1/status
"""


class UsageError(Exception):
    """The command line or the config file cannot be used; the text says what to do."""


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


def option_values(arguments: Sequence[str], canonical: str) -> list[tuple[int, str]]:
    """(index of the word that holds the value, value) of each use of an option, in every spelling that vLLM takes."""
    found = []
    for i, word in enumerate(arguments):
        option = resolve(word)
        if option is None or option.canonical != canonical or option.dotted:
            continue
        if option.value is not None:
            found.append((i, option.value))
        elif i + 1 < len(arguments):
            found.append((i + 1, arguments[i + 1]))
    return found


def speculative_config(arguments: Sequence[str]) -> dict[str, Any] | None:
    """The speculative config, if it is given as one JSON argument; raises UsageError when that is no JSON object."""
    values = option_values(arguments, "--speculative-config")
    if not values:
        return None
    try:
        data = json.loads(values[-1][1])
    except ValueError as error:
        raise UsageError(f"--speculative-config is not valid JSON: {error}") from error
    if not isinstance(data, dict):
        raise UsageError("--speculative-config must be a JSON object")
    return data


def check_schedule(config: ConfigFile, speculative: Mapping[str, Any] | None) -> None:
    """Refuse early what the engine would refuse after minutes of loading; raises UsageError."""
    if speculative is None:
        return
    if TABLE_KEY in speculative:
        raise UsageError(f"the schedule is given twice: in --dsd-config and as {TABLE_KEY}; remove the latter")
    maximum = speculative.get("num_speculative_tokens")
    problems = validate(config.ranges, maximum) if isinstance(maximum, int) else []
    if problems:
        raise UsageError("the schedule cannot be used: " + "; ".join(f"{p.field}: {p.message}" for p in problems))


def static_table(arguments: Sequence[str], config: ConfigFile) -> list[str]:
    """`arguments` with the schedule as vLLM's own table; raises UsageError where there is no JSON to put it into."""
    speculative = speculative_config(arguments)
    if speculative is None:
        raise UsageError(
            "with this vLLM version give the speculative config as one JSON argument, --speculative-config"
        )
    index, value = option_values(arguments, "--speculative-config")[-1]
    changed = list(arguments)
    text = json.dumps(speculative | {TABLE_KEY: to_triples(config.ranges)})
    changed[index] = changed[index].removesuffix(value) + text
    return changed


def names_host(arguments: Sequence[str]) -> bool:
    """Whether the user says where to listen, on the command line or in vLLM's own config file."""
    if option_values(arguments, "--host") or option_values(arguments, "--uds"):
        return True
    for _, path in option_values(arguments, "--config"):
        try:
            data = yaml.safe_load(Path(path).read_bytes())
        except (OSError, yaml.YAMLError):
            return False  # vLLM says what is wrong with it
        return isinstance(data, dict) and not {"host", "uds"}.isdisjoint(data)
    return False


def default_host() -> str:
    """`::` where that reaches IPv6 and IPv4 alike, else `0.0.0.0`.

    vLLM binds an IPv6 socket as the kernel makes it. With net.ipv6.bindv6only=1 that would shut IPv4 out, and with
    IPv6 disabled it cannot be bound at all.
    """
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            if probe.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY):
                return "0.0.0.0"
            probe.bind(("::", 0))
    except OSError:
        return "0.0.0.0"
    return "::"


def plugin_list(existing: str | None) -> str:
    """The value of VLLM_PLUGINS with ours in it. It is an allow-list for plugins of every kind: where the user sets
    none, it must name all that vLLM would load by itself."""
    if existing is None:
        names = [plugin.name for group in OTHER_PLUGIN_GROUPS for plugin in entry_points(group=group)]
    else:
        names = [name for name in existing.split(",") if name]
    return ",".join(dict.fromkeys([*names, *PLUGINS]))


def prepare_metrics_folder(environment: Mapping[str, str]) -> str:
    """Make the multiprocess folder, and wipe what an earlier run left: its counters would be added to ours."""
    folder = environment.get(MULTIPROC_DIR) or tempfile.mkdtemp(prefix="dsd-serve-")
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for old in Path(folder).glob("*.db"):
            old.unlink()
    except OSError as error:
        raise UsageError(f"{MULTIPROC_DIR}={folder}: {error.strerror}") from error
    return folder


def environment_for(options: Options, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of `vllm serve`."""
    changed = dict(environment)
    changed[PLUGINS_ENV] = plugin_list(environment.get(PLUGINS_ENV))
    changed[MULTIPROC_DIR] = prepare_metrics_folder(environment)
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
    if options.config is not None:
        config = config_file.read(options.config)
        check_schedule(config, speculative_config(arguments))
        if compat.gate().mode == "off":
            arguments = static_table(arguments, config)
    if not names_host(arguments):
        # After `--` vLLM takes every word for a value.
        end = arguments.index("--") if "--" in arguments else len(arguments)
        arguments[end:end] = ["--host", default_host()]
    return arguments


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
    if not gate.vllm_version:
        raise UsageError(gate.reason)
    arguments = arguments_for(options)
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
        run(words)
    except (UsageError, config_file.ConfigFileError) as error:
        say(str(error))
        sys.exit(2)
