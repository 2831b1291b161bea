"""`kubectl dsd convert`."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from dsd_runtime.cli.errors import InputError
from dsd_runtime.convert import ConvertError
from dsd_runtime.schedule import Problem
from kubectl_dsd import output
from kubectl_dsd.convert import inputs
from kubectl_dsd.convert.forms import compose, docker, files, lines, manifests, values
from kubectl_dsd.convert.inputs import Form, Input
from kubectl_dsd.convert.launch import Launch
from kubectl_dsd.convert.redactor import Redactor, secrets_in
from kubectl_dsd.convert.report import Report, command_of
from kubectl_dsd.convert.resource import Choices, resource_of
from kubectl_dsd.convert.speculative import Wishes
from kubectl_dsd.convert.variables import Variables

NOT_CARRIED_OVER: Final = 3
"""Exit code where the resource would do less than the input."""

_MAX_BYTES: Final = 1 << 20

EPILOG: Final = """\
\b
Examples:
  kubectl dsd convert -- vllm serve acme/llama-8b --max-num-seqs 256 \\
    --speculative-config '{"method": "eagle3", "model": "acme/head", "num_speculative_tokens": 3}'
  kubectl dsd convert -f run.sh --set K=4 > llama.yaml
  kubectl dsd convert -f compose.yaml --select vllm
  kubectl get deployment llama -o yaml | kubectl dsd convert -f - --name llama-dsd
  kubectl dsd convert --model acme/llama-8b -- '{"method": "ngram", "num_speculative_tokens": 3}'

\b
Exit codes:
  0  converted; notes on stderr say what was decided on the way
  2  the input cannot be converted; stderr says why
  3  something could not be carried over, so nothing was printed (with --allow-partial it is, and the code is 0)

With -o json the output is one object: from, resource, notes, notCarriedOver, secrets (commands that make the Secrets
which the resource refers to).
"""


@dataclass(frozen=True)
class Asked:
    """What the command line says."""

    form: Form | None
    variables: dict[str, str]
    select: str | None
    model: str | None
    config_file: str | None
    choices: Choices


@click.command(epilog=EPILOG, context_settings={"allow_interspersed_args": False})
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.option("-f", "--file", "file", help="Read the input from a file; - for stdin.")
@click.option(
    "--from", "form", type=click.Choice(inputs.FORMS), help="Form of the input. Default: found out, and said."
)
@click.option("--name", help="Name of the resource. Default: that in the input, or one after the model.")
@click.option("-n", "--namespace", help="Namespace to write into the resource.")
@click.option("--select", help="Which service, container, object or entry, where the input has several.")
@click.option("--model", help="The target model, for an input that does not name it.")
@click.option("--method", help="The drafter's method, where the input leaves it to the checkpoint.")
@click.option("--schedule", help="Schedule to write instead of that of the input, such as 1-16:3,17-:1.")
@click.option("--image", help="Image with dsd-runtime, for spec.engine.image.")
@click.option("--set", "assignments", multiple=True, metavar="NAME=VALUE", help="Value of a variable in the input.")
@click.option("--config-file", help="The local copy of the file that the command's own --config names.")
@click.option("--allow-partial", is_flag=True, help="Print the resource even if something is not carried over.")
@click.option("-o", "--output", "output_form", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
def convert(
    words: tuple[str, ...], file: str | None, form: Form | None, name: str | None, namespace: str | None,
    select: str | None, model: str | None, method: str | None, schedule: str | None, image: str | None,
    assignments: tuple[str, ...], config_file: str | None, allow_partial: bool, output_form: str,
) -> None:  # fmt: skip
    """Turn the way vLLM is run now into a DSDDeployment.

    Takes, after -- or from a file: a vLLM command line or a script with one, a docker or podman run line, a compose
    file, a Deployment, StatefulSet or Pod, a VLLMRuntime, an LLMInferenceService, values of a Helm chart, vLLM's config
    file, or the JSON of --speculative-config. Nothing is run and no cluster is asked. Secrets are never printed: they
    become references to Secrets, and stderr shows the commands that make those.
    """
    choices = Choices(name, namespace or _namespace(), image, Wishes(method, schedule))
    asked = Asked(form, _assignments(assignments), select, model, config_file, choices)
    report, redactor = Report(), Redactor()
    try:
        redactor.learn(*secrets_in(asked.variables.items()))
        source = _source(words, file, form, redactor)
        resource = convert_input(source, asked, report, redactor)
    except ConvertError as error:
        report.take(error)
        source, resource = None, None
    _tell(report, redactor, source)
    if resource is None:
        raise InputError(_lines("this cannot be converted:", report.problems, redactor))
    _finish(resource, report, redactor, source, output_form, allow_partial)


def convert_input(source: Input, asked: Asked, report: Report, redactor: Redactor) -> dict[str, Any] | None:
    """The resource; None where there is a problem, which is in the report. Raises ConvertError."""
    variables = Variables(report, asked.variables)
    launch = _launch(source, asked, variables)
    if launch is None:
        return None
    if asked.config_file is not None:
        data = _learned(inputs.load(_read(asked.config_file)), redactor)
        launch.arguments = files.insert(launch.arguments, data[0] if data else None, report)
    if asked.model is not None and source.form != "json":
        launch.arguments = ["--model", asked.model, *launch.arguments]
    return resource_of(launch, asked.choices, report, redactor)


def _launch(source: Input, asked: Asked, variables: Variables) -> Launch | None:
    if source.form == "vllm":
        return lines.read(source, variables)
    if source.form == "docker":
        return docker.read(source, variables)
    if source.form == "compose":
        return compose.read(source, variables, asked.select)
    if source.form == "kubernetes":
        return manifests.read(source, variables, asked.select)
    if source.form == "helm":
        return values.read(source, variables, asked.select)
    if source.form == "config":
        return files.read_config(source, variables.report)
    return files.read_json(source, asked.model, variables.report)


def _namespace() -> str | None:
    """`-n` of the command before this one."""
    parent = click.get_current_context().parent
    found = parent.params.get("namespace") if parent else None
    return str(found) if found else None


def _assignments(pairs: Sequence[str]) -> dict[str, str]:
    for pair in pairs:
        if "=" not in pair:
            raise InputError("--set takes NAME=VALUE")
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs)}


def _source(words: tuple[str, ...], file: str | None, form: Form | None, redactor: Redactor) -> Input:
    """The input, its secrets learned before anybody says a word about it."""
    if bool(words) == (file is not None):
        raise InputError("give the input either after --, as a command line, or with -f FILE (- for stdin)")
    _learned(list(words), redactor)
    text = words[0] if len(words) == 1 else "" if file is None else _read(file)
    try:
        source = inputs.read_words(list(words), form) if file is None else inputs.read_text(text, form)
    except ConvertError:
        redactor.learn_text(text)
        raise
    if source.data:
        _learned(source.data, redactor)
    else:
        redactor.learn_text(source.text)
    return source


def _learned(data: list[Any], redactor: Redactor) -> list[Any]:
    """`data` as it is, after the redactor has seen what in it is a secret."""
    redactor.data(data, lambda _: None)
    return data


def _read(name: str) -> str:
    try:
        if name == "-":
            data = sys.stdin.buffer.read(_MAX_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise InputError(f"{name}: is larger than {_MAX_BYTES} bytes")
        return data.decode()
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}") from error
    except UnicodeError as error:
        raise InputError(f"{name}: is no text") from error


def _tell(report: Report, redactor: Redactor, source: Input | None) -> None:
    """Notes, on stderr."""
    if source is not None:
        output.note(f"read as {inputs.TITLES[source.form]} (--from {source.form})")
    for found in dict.fromkeys(report.notes):
        output.note(redactor.text(_line(found)))


def _finish(
    resource: dict[str, Any], report: Report, redactor: Redactor, source: Input | None, form: str, allow_partial: bool
) -> None:
    namespace = resource["metadata"].get("namespace")
    commands = command_of(report.secrets, namespace)
    if commands:
        output.note("before you apply this, make its secrets:\n" + "\n".join(f"  {line}" for line in commands))
    refused = bool(report.lost) and not allow_partial
    if report.lost:
        click.echo(_lines("not carried over:", report.lost, redactor), err=True)
    if form == "json":
        document = {
            "from": source.form if source else None,
            "resource": None if refused else resource,
            "notes": _objects(report.notes, redactor),
            "notCarriedOver": _objects(report.lost, redactor),
            "secrets": commands,
        }
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    elif not refused:
        click.echo(output.to_yaml(resource), nl=False)
    if refused:
        click.echo("Nothing was printed; --allow-partial prints the resource without these.", err=True)
        sys.exit(NOT_CARRIED_OVER)  # what click raises for it is no exit code outside of its own `main`


def _objects(found: Sequence[Problem], redactor: Redactor) -> list[dict[str, str]]:
    return [{"field": redactor.text(p.field), "message": redactor.text(p.message)} for p in dict.fromkeys(found)]


def _line(found: Problem) -> str:
    return f"{found.field}: {found.message}" if found.field else found.message


def _lines(title: str, found: Sequence[Problem], redactor: Redactor) -> str:
    lines = [redactor.text(_line(p)) for p in dict.fromkeys(found)]
    return "\n  ".join([title, *lines])
