"""Finds `vllm serve` among the words of a command, and knows servers that are not vLLM."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kubectl_dsd.convert.report import Report
from kubectl_dsd.convert.shell import ASSIGNMENT, Command, Splitter
from kubectl_dsd.convert.variables import Variables

SHELLS: Final = ("sh", "bash", "dash", "zsh", "ash", "ksh")

_SGLANG: Final = (
    "this is an SGLang command, not vLLM's; write it for vLLM first. K (num_speculative_tokens) is SGLang's "
    "--speculative-num-steps, not its --speculative-num-draft-tokens"
)
_OTHER_SERVERS: Final = {
    "sglang": _SGLANG,
    "trtllm-serve": "this is a TensorRT-LLM command, not vLLM's; write it for vLLM first",
    "tritonserver": "this starts Triton, not vLLM; write a vLLM command first",
    "text-generation-launcher": "this is a command of Text Generation Inference, not vLLM's; write it for vLLM first",
    "llama-server": "this is a llama.cpp command, not vLLM's; write it for vLLM first",
    "lmdeploy": "this is an LMDeploy command, not vLLM's; write it for vLLM first",
    "ray": "this starts Ray: one pod is one engine here, several nodes are not supported; use spec.replicas",
}
_SGLANG_OPTIONS: Final = ("--speculative-algo", "--speculative-num-steps", "--speculative-eagle-topk")


@dataclass
class Found:
    """Arguments of `vllm serve` and the variables that the command sets for it."""

    arguments: list[str]
    variables: dict[str, str] = field(default_factory=dict)


def _base(word: str) -> str:
    return word.rpartition("/")[2]


def foreign(words: Sequence[str]) -> str | None:
    """Why these words start something else than vLLM; None where they do not."""
    for position, word in enumerate(words):
        module = words[position + 1] if word == "-m" and position + 1 < len(words) else ""
        if module.startswith("sglang") or (word.replace("_", "-").startswith(_SGLANG_OPTIONS)):
            return _SGLANG
        if position < _PROGRAM_WITHIN and (text := _OTHER_SERVERS.get(_base(word))):
            return text
    return None


_PROGRAM_WITHIN: Final = 4
"""A program's name stands among the first words, behind `exec`, `env` and the like."""


def serve_arguments(words: Sequence[str]) -> list[str] | None:
    """What follows `vllm serve`, or an old entry point of vLLM; None where neither is called."""
    for position, word in enumerate(words):
        after = list(words[position + 1 :])
        if _base(word) == "vllm" and after[:1] == ["serve"]:
            return after[1:]
        if _base(word) == "dsd-serve" or word.endswith("vllm/entrypoints/openai/api_server.py"):
            return after
        if word == "-m" and after and after[0].startswith("vllm.entrypoints"):
            return after[2:] if after[1:2] == ["serve"] else after[1:]
    return None


def read_words(words: Sequence[str], variables: Variables) -> Found | None:
    """Words that may begin with assignments, a wrapper (`env`, `nohup`, `numactl`), or a shell with a script."""
    pairs = [match for word in words if (match := ASSIGNMENT.fullmatch(word))]
    own = {match[1]: match[2] for match in pairs}
    if (script := _script(words)) is not None:
        variables.known |= own
        found = read_script(script, variables)
        return Found(found.arguments, own | found.variables) if found else None
    arguments = serve_arguments(words)
    if arguments is None:
        return None
    before = words[: len(words) - len(arguments)]
    _report_wrappers(before, variables.report)
    return Found(arguments, {name: value for name, value in own.items() if f"{name}={value}" in before})


_WRAPPERS: Final = (
    *("exec", "env", "nohup", "sudo", "time", "command", "tini", "dumb-init", "--", "python", "python3", "-m", "-u"),
    *("uv", "run", "vllm", "serve", "dsd-serve", "{", "!"),
)
"""Words before the arguments that change nothing in a pod."""


def _report_wrappers(before: Sequence[str], report: Report) -> None:
    for word in before:
        base = _base(word)
        if base not in _WRAPPERS and not ASSIGNMENT.fullmatch(word) and not word.startswith(("-", "vllm.entrypoints")):
            if base != "api_server.py":
                report.lose(
                    base, "this wraps vLLM here and cannot in a pod; use podTemplate for CPU and memory placement"
                )
            return


def _script(words: Sequence[str]) -> str | None:
    """The script of `bash -c SCRIPT`, as one of the first words."""
    for position, word in enumerate(words[:_PROGRAM_WITHIN]):
        if _base(word) in SHELLS:
            for offset, option in enumerate(words[position + 1 :], start=position + 1):
                if not option.startswith("-"):
                    break
                if option.endswith("c") and offset + 1 < len(words):
                    return words[offset + 1]
    return None


def read_script(text: str, variables: Variables) -> Found | None:
    """The one command of a shell text that starts vLLM; None where none does, or where several do (a problem)."""
    splitter = Splitter(variables)
    commands = splitter.split(text)
    found = [(command, engine) for command in commands if (engine := _engine(command, variables))]
    if not found:
        report_foreign(commands, variables.report)
        return None
    if why := foreign(found[0][0].words):
        variables.report.problem("", why)
        return None
    if len(found) > 1:
        variables.report.problem("", f"{len(found)} commands start vLLM here; convert them one by one")
    if any(_base(command.words[0]) == "ray" for command in commands if command.words):
        variables.report.problem("ray", _OTHER_SERVERS["ray"])
    command, engine = found[0]
    _report_others([other for other in commands if other is not command], variables.report)
    return Found(engine.arguments, splitter.exported | command.assigned | engine.variables)


_IDLE: Final = (
    *(
        "export",
        "set",
        "echo",
        "cd",
        "wait",
        "trap",
        "tee",
        "printf",
        "shopt",
        "ulimit",
        "mkdir",
        "sleep",
        "cat",
        "true",
    ),
    *("if", "then", "fi", "else", "elif", "[", "[[", "test", "for", "do", "done", "while", "case", "esac", "{", "}"),
    *("declare", "readonly", "local", "unset", "date", "exit", "ray"),
)
"""Commands of a script that leave vLLM as it is (ray is refused elsewhere)."""


def _report_others(commands: Sequence[Command], report: Report) -> None:
    """Commands beside the one that starts vLLM: what they prepare is not there in a pod."""
    for command in commands:
        name = _base(command.words[0]) if command.words else "echo"
        if name in _PREPARING:
            report.lose(
                name, f"`{' '.join(command.words[:2])}` prepares something before vLLM starts; put it into an image"
            )
        elif name not in _IDLE:
            report.note(name, "another command of the script; it is not run in the pod")


_PREPARING: Final = ("pip", "pip3", "uv", "apt", "apt-get", "conda", "git", "curl", "wget", "huggingface-cli", "hf")


def _engine(command: Command, variables: Variables) -> Found | None:
    words = command.words
    if words[:1] == ["eval"]:  # the words are parsed once more, as KServe's templates do
        return read_script(" ".join(words[1:]), variables)
    return read_words(words, variables) if words else None


def report_foreign(commands: Sequence[Command], report: Report) -> None:
    """Say which other server is started here."""
    text = next((text for command in commands if (text := foreign(command.words))), None)
    if text is not None:
        report.problem("", text)
