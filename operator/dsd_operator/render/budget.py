"""Whether the tokens of one engine step suffice for all sequences with their drafts.

Told before a pod is made where the resource names both numbers; where one is vLLM's own default, vLLM tells, and its
sentence reaches the status. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dsd_operator.api import Spec
from dsd_runtime.convert.numbers import human
from dsd_runtime.options import resolve
from dsd_runtime.schedule import Problem


@dataclass(frozen=True)
class Shortage:
    """A full batch needs more tokens in a step than it may have."""

    tokens: int
    needed: int

    def __str__(self) -> str:
        return (
            f"--max-num-batched-tokens is {self.tokens}, and engine.maxNumSeqs sequences of 1 + "
            f"drafter.numSpeculativeTokens tokens are {self.needed}"
        )


def shortage(spec: Spec) -> Shortage | None:
    """None also where one of the numbers is not in the resource."""
    tokens, sequences = _tokens(spec.engine.extra_args), spec.engine.max_num_seqs
    if tokens is None or sequences is None:
        return None
    needed = sequences * (1 + spec.drafter.num_speculative_tokens)
    return Shortage(tokens, needed) if tokens < needed else None


def lora_problems(spec: Spec) -> list[Problem]:
    """vLLM does not start with LoRA adapters and such a shortage (`EngineArgs.create_engine_config`)."""
    short = shortage(spec)
    if short is None or not any(_means(item, "--enable-lora") for item in spec.engine.extra_args):
        return []
    message = f"with --enable-lora a full batch must fit into one step: {short}; raise the first or lower the second"
    return [Problem("spec.engine.extraArgs", message)]


def _means(item: str, option: str) -> bool:
    found = resolve(item)
    return found is not None and found.canonical == option and not item.startswith("--no")


def _tokens(arguments: Sequence[str]) -> int | None:
    found = option_value(arguments, "--max-num-batched-tokens")
    return None if found is None else human(found)


def option_value(arguments: Sequence[str], option: str) -> str | None:
    """The value that `arguments` give `option`, in any spelling of it; the last one counts, as in argparse."""
    found = None
    for position, item in enumerate(arguments):
        if _means(item, option):
            found = item.partition("=")[2] or "".join(arguments[position + 1 : position + 2])
    return found
