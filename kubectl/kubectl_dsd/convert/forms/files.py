"""vLLM's own config file, and a plain speculative config."""

import datetime as dt
from collections.abc import Mapping
from typing import Any, Final

from dsd_runtime.parameters import normalise
from dsd_runtime.usage import UsageError
from dsd_runtime.vllm_arguments import SPECULATIVE, config_file_words
from kubectl_dsd.convert.inputs import Input
from kubectl_dsd.convert.launch import Launch
from kubectl_dsd.convert.report import Report

_TEXTS: Final = ("revision", "code_revision", "tokenizer_revision", "served_model_name", "model")
"""Keys whose value YAML may turn into something else: a date, or 1.1 for 1.10."""


def words(data: Any, report: Report) -> list[str]:
    """The options that a config file stands for; problems go to the report."""
    if not isinstance(data, Mapping):
        report.problem("config file", "must be a mapping of options to values")
        return []
    for key, value in data.items():
        inner = value.items() if isinstance(value, Mapping) else ()
        for name, item in ((key, value), *((f"{key}.{k}", v) for k, v in inner)):
            if normalise(str(name).rpartition(".")[2]) in _TEXTS and isinstance(item, int | float | dt.date):
                report.problem(str(name), f'YAML makes no text of it; put it in quotes: "{item}" as it was written')
    if report.problems:
        return []
    try:
        return config_file_words(data, "file")
    except UsageError as error:
        report.problem("config file", str(error))
        return []


def insert(arguments: list[str], data: Any, report: Report) -> list[str]:
    """`arguments` with `--config FILE` replaced by what the file says; the command line wins over it."""
    if "--config" not in arguments:
        report.problem("--config-file", "the command has no --config FILE to which it could belong")
        return arguments
    index = arguments.index("--config")
    return [*words(data, report), *arguments[:index], *arguments[index + 2 :]]


def read_config(source: Input, report: Report) -> Launch:
    """A config file as the whole input."""
    return Launch("config", words(source.data[0] if source.data else None, report))


def read_json(source: Input, model: str | None, report: Report) -> Launch | None:
    """A speculative config as the whole input; the model comes from the person."""
    text = source.text if source.words is None else " ".join(source.words)
    if model is None:
        report.problem("model", "a speculative config does not name the target model; give it with --model")
        return None
    return Launch("json", [model, f"{SPECULATIVE}={text.strip()}"])
