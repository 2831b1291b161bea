"""The container that runs vLLM in a pod template, and what of the pod around it goes into spec.podTemplate."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dsd_operator.render.pod_template import ENGINE
from dsd_operator.render.shapes import POD_TEMPLATE, shape_problems
from kubectl_dsd.convert.forms import programs
from kubectl_dsd.convert.forms.items import split_items
from kubectl_dsd.convert.forms.loose import mapping, mappings, words
from kubectl_dsd.convert.launch import Launch, Variable
from kubectl_dsd.convert.redactor import holds_secret
from kubectl_dsd.convert.report import NeededSecret, Report
from kubectl_dsd.convert.secret_names import is_secret_name
from kubectl_dsd.convert.variables import Variables, unknown

Json = dict[str, Any]

_EXPANSION: Final = re.compile(r"\$\$|\$\(([A-Za-z_.-][\w.-]*)\)")
_TAKEN: Final = ("name", "image", "command", "args", "env", "resources", "imagePullPolicy", "ports")
"""Fields of the container that are read into fields of the resource, or that the operator sets."""

_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_OPERATORS: Final = ("terminationMessagePath", "terminationMessagePolicy")
_POD_DEFAULTS: Final = {
    "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30, "enableServiceLinks": False, "securityContext": {},
    "serviceAccountName": "default", "serviceAccount": "default",
}  # fmt: skip
_SHARED_MEMORY: Final = "/dev/shm"
_TOKEN_VOLUME: Final = "kube-api-access-"
_NODE_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""Every pod tolerates these for five minutes without being asked."""

_WRITTEN: Final = ("pod-template-hash", "controller-revision-hash", "kubectl.kubernetes.io/restartedAt")
"""Labels and annotations that controllers and kubectl write."""


class PodReader:
    """Reads one pod template into `launch`."""

    def __init__(self, launch: Launch, variables: Variables) -> None:
        self.launch = launch
        self.variables = variables
        self.report: Report = variables.report

    def read(self, template: Mapping[str, Any], select: str | None) -> Launch | None:
        """The engine; None where there is a problem, which was told."""
        template = _without_nulls(template)
        misshapen = [
            p for p in shape_problems(_shaped(template), POD_TEMPLATE, "template") if not p.field.endswith(".env")
        ]
        if misshapen:
            self.report.problems += misshapen
            return None
        spec = mapping(template.get("spec"))
        containers = mappings(spec.get("containers"))
        container = self._choose(containers, select)
        if container is None:
            return None
        self._engine(container)
        others = [c for c in containers if c is not container]
        self._pod(spec, container, others)
        metadata = mapping(template.get("metadata"))
        kept = {key: _meant(metadata[key]) for key in ("labels", "annotations") if metadata.get(key)}
        if kept := {key: value for key, value in kept.items() if value}:
            self.launch.pod_template["metadata"] = kept
        return self.launch

    def _choose(self, containers: Sequence[Mapping[str, Any]], select: str | None) -> Mapping[str, Any] | None:
        found = (
            [c for c in containers if c.get("name") == select] if select else [c for c in containers if _is_engine(c)]
        )
        found = found or ([containers[0]] if len(containers) == 1 and not select else [])
        if len(found) != 1:
            names = ", ".join(str(c.get("name")) for c in containers) or "none"
            self.report.problem("containers", f"which one runs vLLM? Choose with --select NAME; there are: {names}")
            return None
        return found[0]

    def _engine(self, container: Mapping[str, Any]) -> None:
        launch = self.launch
        launch.image = container.get("image")
        launch.env = [_variable(item) for item in mappings(container.get("env"))]
        launch.resources = {key: value for key, value in mapping(container.get("resources")).items() if value}
        if policy := container.get("imagePullPolicy"):
            launch.engine["imagePullPolicy"] = policy
        for variable in launch.env:
            # One that the container gets from elsewhere is known in the pod only.
            known = self.variables.wanted.get(variable.name, variable.value)
            text = unknown(f"${{{variable.name}}}") if known is None else self._expanded(known)
            self.variables.known[variable.name] = text
        command = [self._expanded(word) for word in words(container.get("command"))]
        arguments = [self._expanded(word) for word in words(container.get("args"))]
        launch.arguments = [*launch.arguments, *self._arguments(command, arguments)]

    def _arguments(self, command: list[str], arguments: list[str]) -> list[str]:
        line = [*command, *split_items(arguments, self.report)]
        if text := programs.foreign(line):
            self.report.problem("command", text)
        found = programs.read_words(line, self.variables)
        if found is not None:
            # Set by a shell: nothing is left for the kubelet to fill in.
            self.launch.env += [Variable(name, value.replace("$", "$$")) for name, value in found.variables.items()]
            return found.arguments
        if command and not command[0].startswith("-"):
            self.report.problem("command", "no command of vLLM is in this; it begins with `vllm serve`")
        return line

    def _expanded(self, text: str) -> str:
        """`$(NAME)` as the kubelet fills it in; one that it does not know stays."""

        def fill(match: re.Match[str]) -> str:
            if match[1] is None:
                return "$"
            value = self.variables.get(match[1])
            return match[0] if value is None else value

        return _EXPANSION.sub(fill, text)

    def _pod(self, spec: Mapping[str, Any], container: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> None:
        volumes = [v for v in mappings(spec.get("volumes")) if not str(v.get("name")).startswith(_TOKEN_VOLUME)]
        mounts = mappings(container.get("volumeMounts"))
        mounts = [m for m in mounts if not str(m.get("name")).startswith(_TOKEN_VOLUME)]
        mounts = [m for m in mounts if not self._shared_memory(m, volumes)]
        used = {
            m.get("name")
            for c in (*others, *mappings(spec.get("initContainers")))
            for m in mappings(c.get("volumeMounts"))
        }
        used |= {m.get("name") for m in mounts}
        engine = {k: v for k, v in container.items() if k not in (*_TAKEN, *_PROBES, *_OPERATORS, "volumeMounts") and v}
        engine |= {"volumeMounts": mounts} if mounts else {}
        self._probes(container)
        kept = {k: v for k, v in spec.items() if k not in ("containers", "volumes") and v != _POD_DEFAULTS.get(k)}
        self._of_a_live_pod(kept)
        pod: Json = {key: value for key, value in kept.items() if value not in (None, [], {})}
        named = [{"name": ENGINE, **engine}] if engine else []
        sidecars = [self._without_secrets(c) for c in others]
        pod |= {"containers": [*named, *sidecars]} if named or sidecars else {}
        pod |= (
            {"initContainers": [self._without_secrets(c) for c in pod["initContainers"]]}
            if "initContainers" in pod
            else {}
        )
        pod |= {"volumes": kept_volumes} if (kept_volumes := [v for v in volumes if v.get("name") in used]) else {}
        if pod:
            self.launch.pod_template["spec"] = pod

    def _of_a_live_pod(self, spec: Json) -> None:
        """Take out what the API server and the scheduler wrote into a pod that runs."""
        for key in ("serviceAccount", "nodeName", "preemptionPolicy", "priority"):
            spec.pop(key, None)
        if spec.pop("enableServiceLinks", None):
            self.report.note("enableServiceLinks", "left out: a Service called vllm would stop every engine")
        tolerations = [t for t in mappings(spec.get("tolerations")) if t.get("key") not in _NODE_TAINTS]
        spec["tolerations"] = tolerations

    def _shared_memory(self, mount: Mapping[str, Any], volumes: Sequence[Mapping[str, Any]]) -> bool:
        """Whether this is /dev/shm, which the resource has a field for."""
        if str(mount.get("mountPath", "")).rstrip("/") != _SHARED_MEMORY:
            return False
        volume = next((v for v in volumes if v.get("name") == mount.get("name")), {})
        if limit := mapping(volume.get("emptyDir")).get("sizeLimit"):
            self.launch.spec["sharedMemory"] = {"sizeLimit": limit}
        return True

    def _probes(self, container: Mapping[str, Any]) -> None:
        if any(container.get(name) for name in _PROBES):
            self.report.note(
                "probes", "left out: the operator has its own; spec.startup.timeoutSeconds is what they wait"
            )
        probe = mapping(container.get("startupProbe"))
        seconds = probe.get("initialDelaySeconds", 0) + probe.get("periodSeconds", 10) * probe.get(
            "failureThreshold", 3
        )
        if probe and seconds > _DEFAULT_START:
            self.launch.spec["startup"] = {"timeoutSeconds": seconds}

    def _without_secrets(self, container: Mapping[str, Any]) -> Json:
        """Another container, its secret values replaced by references."""
        env = [self._safe(item) for item in mappings(container.get("env"))]
        return {**container, **({"env": env} if env else {})}

    def _safe(self, item: Mapping[str, Any]) -> Json:
        name, value = str(item.get("name")), item.get("value")
        if value in (None, "") or not (is_secret_name(name) or holds_secret(str(value))):
            return dict(item)
        needed = NeededSecret(f"{self.launch.name or 'engine'}-env", name, name)
        self.report.need(needed)
        self.report.note(f"env {name}", f"may be a secret; it comes from key {name} of Secret {needed.name}")
        return {"name": name, "valueFrom": {"secretKeyRef": {"name": needed.name, "key": name}}}


_DEFAULT_START: Final = 3600


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value if item is not None] if isinstance(value, list) else value


def _shaped(template: Mapping[str, Any]) -> Json:
    """What a pod template has of the parts that are checked; a Pod's metadata has more."""
    metadata = {k: v for k, v in mapping(template.get("metadata")).items() if k in ("labels", "annotations")}
    return {"metadata": metadata, "spec": template.get("spec", {})}


def _meant(values: Mapping[str, Any]) -> Json:
    return {name: value for name, value in values.items() if name not in _WRITTEN and "last-applied" not in name}


def _is_engine(container: Mapping[str, Any]) -> bool:
    line = [*words(container.get("command")), *words(container.get("args"))]
    text = " ".join([str(container.get("image", "")), *line]).lower()
    return "vllm" in text or "--speculative" in text or "dsd-serve" in text


def _variable(item: Mapping[str, Any]) -> Variable:
    source, value = item.get("valueFrom"), item.get("value")
    name = str(item.get("name"))
    if source:
        return Variable(name, None, dict(source))
    return Variable(name, str(value).lower() if isinstance(value, bool) else "" if value is None else str(value))
