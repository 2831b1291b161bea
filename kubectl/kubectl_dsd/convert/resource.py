"""Puts the DSDDeployment together, and lets the operator's own rules judge it before anybody applies it."""

import re
from dataclasses import dataclass, field
from typing import Any, Final

from dsd_operator.api import InvalidResource, Spec, constants, parse
from dsd_operator.render.lifecycle import short_grace
from dsd_operator.render.preflight import problems
from dsd_runtime.schedule import MAX_BATCH_SIZE
from kubectl_dsd.convert import images, speculative
from kubectl_dsd.convert.arguments import Sorted, Sorter
from kubectl_dsd.convert.environment import API_KEY, EnvironmentSorter
from kubectl_dsd.convert.launch import Launch, Variable
from kubectl_dsd.convert.model import model_name, resource_name
from kubectl_dsd.convert.redactor import Redactor, secrets_in
from kubectl_dsd.convert.report import NO_SPECULATION, Report
from kubectl_dsd.convert.speculative import Wishes
from kubectl_dsd.convert.variables import explain, shown, unknowns

Json = dict[str, Any]

GPU: Final = "nvidia.com/gpu"
_PODS: Final = ("kubernetes", "helm")
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_ORDER: Final = {
    "model": ("name", "revision", "servedNames", "tokenSecretRef"),
    "engine": (
        *("image", "imagePullPolicy", "modelRunner", "maxNumSeqs", "maxModelLen", "dtype", "quantization"),
        *("tensorParallelSize", "gpuMemoryUtilization", "extraArgs", "env"),
    ),
}


@dataclass(frozen=True)
class Choices:
    """What the person gives on the command line."""

    name: str | None = None
    namespace: str | None = None
    image: str | None = None
    wishes: Wishes = field(default_factory=Wishes)


def resource_of(launch: Launch, choices: Choices, report: Report, redactor: Redactor) -> Json | None:
    """The DSDDeployment; None where there is a problem, which was told."""
    redactor.learn(*secrets_in((v.name, v.value) for v in launch.env))
    arguments = Sorter(report).sort(launch.arguments)
    redactor.learn(*(value for values in arguments.secrets.values() for value in values))
    model = _model(arguments, report)
    name = _name(launch, choices, model, report)
    spec = _spec(launch, arguments, model, name, choices, report)
    metadata = {"name": name} | ({"namespace": n} if (n := choices.namespace or launch.namespace) else {})
    body = {"apiVersion": constants.API_VERSION, "kind": constants.KIND, "metadata": metadata, "spec": spec}
    if not report.problems:
        body = redactor.data(
            body, lambda path: report.lose(path, "held a secret, which was taken out; put it into a Secret")
        )
        _judge(body, report)
    return None if report.problems else body


def _model(arguments: Sorted, report: Report) -> str:
    if not arguments.models:
        if not report.problems:
            report.problem("model", "no model is named here; add it after `vllm serve`")
        return ""
    model, *stray = arguments.models
    if unknowns(model):
        for what in unknowns(model):
            report.problem("model", explain(what))
        return ""
    if model.startswith("{") or (stray and arguments.speculative):
        arguments.stray = stray
    if stray and not _cut_json(arguments):
        report.problem(
            "",
            f"{len(stray)} word{'s belong' if len(stray) > 1 else ' belongs'} to no option; the model is taken to be "
            f"{shown(model)}. Is a quote missing, or is the model named twice?",
        )
    return model_name(model, "model", report)


def _cut_json(arguments: Sorted) -> bool:
    """Whether stray words are the pieces of a JSON value without quotes, which `speculative` explains better."""
    return any(word.count("{") > word.count("}") for word in arguments.speculative)


def _name(launch: Launch, choices: Choices, model: str, report: Report) -> str:
    name = choices.name or launch.name
    if name is None:
        name = resource_name(model) if model else "engine"
        report.note("metadata.name", f"{name}, after the model; another: --name")
    elif not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        name = resource_name(name)
        report.note(
            "metadata.name", f"{name}, since Kubernetes takes small letters, digits and dashes; another: --name"
        )
    return name


_LONGEST_NAME: Final = 253


def _spec(launch: Launch, arguments: Sorted, model: str, name: str, choices: Choices, report: Report) -> Json:
    environment = EnvironmentSorter(name, report)
    found = environment.sort(launch.env if launch.form in _PODS else list(map(_literal, launch.env)))
    if "--hf-token" in arguments.secrets:
        _token(arguments.secrets["--hf-token"], launch, environment, report)
    env = _with_api_key(found.env, arguments, launch, environment, report)
    values = {**launch.engine, **_under("engine", arguments.fields)}
    values |= {"modelRunner": found.runner} if found.runner else {}
    values |= {"extraArgs": arguments.extra} if arguments.extra else {}
    values |= {"env": env} if env else {}
    if choices.image:
        values["image"] = choices.image
    elif launch.image:
        images.judge(launch.image, report)
    about_model = {"name": model, **_under("model", arguments.fields)}
    about_model |= {"tokenSecretRef": found.token} if found.token else {}
    spec = {"model": _ordered("model", about_model), **_speculation(arguments, values, choices, report)}
    spec |= {"engine": _ordered("engine", values)} if values else {}
    spec |= {"replicas": launch.replicas} if launch.replicas is not None else {}
    spec |= _resources(launch, found.devices, values, report)
    spec |= launch.spec
    rollout = {**launch.spec.get("rollout", {}), **_under("rollout", arguments.fields)}
    spec |= {"rollout": rollout} if rollout else {}
    return spec | ({"podTemplate": launch.pod_template} if launch.pod_template else {})


def _literal(variable: Variable) -> Variable:
    """A variable of a machine: in a pod `$(NAME)` and `$$` in it would be filled in."""
    return variable if variable.value is None else Variable(variable.name, variable.value.replace("$", "$$"))


def _speculation(arguments: Sorted, engine: Json, choices: Choices, report: Report) -> Json:
    if not arguments.speculative and not arguments.old:
        if not report.problems:
            report.problem("", NO_SPECULATION)
        return {}
    config = speculative.gather(arguments.speculative, arguments.old, arguments.stray, report)
    found = speculative.fields(config, choices.wishes, _batch_size(engine.get("maxNumSeqs")), report)
    if found and (wrong := speculative.split_problem(found["drafter"], engine.get("tensorParallelSize", 1))):
        report.problem("draft_tensor_parallel_size", wrong)
    prepared = arguments.fields.get("drafter.preparedTokens")
    if found and prepared:
        found["drafter"]["preparedTokens"] = prepared
    return found


def _batch_size(number: int | None) -> int | None:
    """A number that a range may end at; any other is a problem of its own field."""
    return number if number is not None and 1 <= number <= MAX_BATCH_SIZE else None


def _token(values: list[str], launch: Launch, environment: EnvironmentSorter, report: Report) -> None:
    if not values:
        report.note("--hf-token", "without a value it takes the token of a login; in a pod there is none")
    environment.token(_source_of(values, launch))


def _with_api_key(
    env: list[Json], arguments: Sorted, launch: Launch, environment: EnvironmentSorter, report: Report
) -> list[Json]:
    """`env` with `--api-key` as the variable that vLLM reads where that option is not given.

    Given both, vLLM takes the option and does not look at the variable (`register_api_server_middleware` in
    vllm/entrypoints/serve/middleware/register.py), so the option's key takes the variable's place.
    """
    values = arguments.secrets.get("--api-key")
    if not values:
        return env
    if len(values) > 1:
        report.lose("--api-key", f"{len(values)} keys are given, and {API_KEY} holds one; clients need that one")
    given = next((variable for variable in reversed(launch.env) if variable.name == API_KEY), None)
    if given is not None and (values[0] == given.value or API_KEY in _names(values)):
        return env
    if given is not None:
        report.note("--api-key", f"vLLM takes it and ignores {API_KEY}, given too; the key of the option is kept")
    source = _source_of(values, launch)
    key = {"name": API_KEY, "valueFrom": source} if source else environment.secret(API_KEY)
    return [*(item for item in env if item["name"] != API_KEY), key]


def _names(values: list[str]) -> list[str]:
    """The variables that the first value refers to."""
    return [what.strip("${}") for value in values[:1] for what in unknowns(value)]


def _source_of(values: list[str], launch: Launch) -> Json | None:
    """The Secret behind a value that is nothing but a reference to a variable of the container."""
    names = _names(values)
    return next((v.source for v in launch.env if v.name in names and v.source), None)


def _resources(launch: Launch, visible: int | None, engine: Json, report: Report) -> Json:
    """The resources of a Pod as they are; of a machine the number of GPUs is added."""
    if launch.form in _PODS:
        return {"resources": launch.resources} if launch.resources else {}
    limits = launch.resources.get("limits", {})
    size = engine.get("tensorParallelSize", 1)
    devices = visible if visible is not None and visible > 0 else launch.devices
    if devices is None or devices < 0:
        report.note(
            "resources", f"{size} GPU{'s' if size > 1 else ''} ({GPU}), after the tensor parallel size; check it"
        )
        devices = size
    requests = launch.resources.get("requests")
    return {"resources": ({"requests": requests} if requests else {}) | {"limits": {**limits, GPU: devices}}}


def _under(parent: str, fields: Json) -> Json:
    return {path.partition(".")[2]: value for path, value in fields.items() if path.startswith(f"{parent}.")}


def _ordered(parent: str, values: Json) -> Json:
    return {key: values[key] for key in _ORDER[parent] if key in values}


def _judge(body: Json, report: Report) -> None:
    """What the API server's rules and the operator's preflight would say."""
    metadata = {"namespace": "default", **body["metadata"]}
    try:
        resource = parse({**body, "metadata": metadata})
    except InvalidResource as error:
        report.problems += error.problems
        return
    report.problems += problems(resource)
    _note_grace(resource.spec, report)


def _note_grace(spec: Spec, report: Report) -> None:
    """A grace period of the input takes the place of the operator's, which leaves running requests their time."""
    short = short_grace(spec)
    if short is not None:
        report.note("podTemplate.spec.terminationGracePeriodSeconds", short)
