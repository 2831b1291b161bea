"""Checks the free-form podTemplate against the shapes that merging relies on.

The CRD keeps podTemplate as it comes (embedding the whole Pod schema would make the CRD huge), so types are checked
here, and lists that the API server keys by some field must not hold a key twice: it would refuse the whole object with
a message nobody understands. Fields that are not listed are passed on and left to the API server.
"""

import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from dsd_runtime.schedule import Problem

Kind = Literal["string", "boolean", "integer", "integer or string", "object", "list", "map of strings"]


@dataclass(frozen=True)
class Shape:
    """Expected type of one value: `fields` for an object, `items` and the merge `key` for a list."""

    kind: Kind
    fields: Mapping[str, "Shape"] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    items: "Shape | None" = None
    key: tuple[str, ...] = ()


def _object(*required: str, **fields: Shape) -> Shape:
    return Shape("object", fields=fields, required=required)


def _listed(items: Shape, *key: str) -> Shape:
    return Shape("list", items=items, key=key)


STRING: Final = Shape("string")
BOOLEAN: Final = Shape("boolean")
INTEGER: Final = Shape("integer")
PORT: Final = Shape("integer or string")
OBJECT: Final = Shape("object")
STRINGS: Final = _listed(STRING)
STRING_MAP: Final = Shape("map of strings")

_NAMED: Final = _object("name", name=STRING)

_ENV: Final = _object("name", name=STRING, value=STRING, valueFrom=OBJECT)

_CONFINED: Final = {
    "seccompProfile": _object(type=STRING), "appArmorProfile": _object(type=STRING),
    "seLinuxOptions": _object(type=STRING, user=STRING, role=STRING), "windowsOptions": _object(hostProcess=BOOLEAN),
    "runAsUser": INTEGER, "runAsGroup": INTEGER, "runAsNonRoot": BOOLEAN,
}  # fmt: skip
"""What a pod's and a container's security context have in common."""

_SECURITY: Final = _object(
    capabilities=_object(add=STRINGS, drop=STRINGS), privileged=BOOLEAN, allowPrivilegeEscalation=BOOLEAN,
    readOnlyRootFilesystem=BOOLEAN, procMount=STRING, **_CONFINED,
)  # fmt: skip

_POD_SECURITY: Final = _object(
    fsGroup=INTEGER, fsGroupChangePolicy=STRING, supplementalGroups=_listed(INTEGER),
    sysctls=_listed(_object("name", name=STRING)), **_CONFINED,
)  # fmt: skip

_HTTP: Final = _object(port=PORT, host=STRING)
_HOOK: Final = _object(exec=OBJECT, httpGet=_HTTP, tcpSocket=_HTTP)

_PROBE: Final = _object(
    initialDelaySeconds=INTEGER, timeoutSeconds=INTEGER, periodSeconds=INTEGER, successThreshold=INTEGER,
    failureThreshold=INTEGER, terminationGracePeriodSeconds=INTEGER,
    exec=OBJECT, httpGet=_HTTP, tcpSocket=_HTTP, grpc=_object(port=INTEGER),
)  # fmt: skip

_CONTAINER: Final = _object(
    "name",
    name=STRING, image=STRING, imagePullPolicy=STRING, command=STRINGS, args=STRINGS, workingDir=STRING,
    ports=_listed(_object("containerPort", containerPort=INTEGER, protocol=STRING, name=STRING,
                          hostPort=INTEGER), "containerPort", "protocol"),
    env=_listed(_ENV, "name"), envFrom=_listed(OBJECT),
    resources=_object(requests=OBJECT, limits=OBJECT, claims=_listed(_NAMED, "name")),
    volumeMounts=_listed(_object("name", "mountPath", name=STRING, mountPath=STRING, subPath=STRING,
                                 readOnly=BOOLEAN), "mountPath"),
    volumeDevices=_listed(_object("devicePath", name=STRING, devicePath=STRING), "devicePath"),
    startupProbe=_PROBE, readinessProbe=_PROBE, livenessProbe=_PROBE, securityContext=_SECURITY,
    lifecycle=_object(preStop=_HOOK, postStart=_HOOK), restartPolicy=STRING, stdin=BOOLEAN, tty=BOOLEAN,
    terminationMessagePath=STRING, terminationMessagePolicy=STRING,
)  # fmt: skip

_TOLERATION: Final = _object(key=STRING, operator=STRING, value=STRING, effect=STRING, tolerationSeconds=INTEGER)

_POD_SPEC: Final = _object(
    containers=_listed(_CONTAINER, "name"), initContainers=_listed(_CONTAINER, "name"),
    volumes=_listed(_NAMED, "name"), tolerations=_listed(_TOLERATION), nodeSelector=STRING_MAP, affinity=OBJECT,
    imagePullSecrets=_listed(_NAMED, "name"), hostAliases=_listed(_object("ip", ip=STRING), "ip"),
    topologySpreadConstraints=_listed(_object("topologyKey", "whenUnsatisfiable", topologyKey=STRING,
                                              whenUnsatisfiable=STRING), "topologyKey", "whenUnsatisfiable"),
    schedulingGates=_listed(_NAMED, "name"), resourceClaims=_listed(_NAMED, "name"), readinessGates=_listed(OBJECT),
    securityContext=_POD_SECURITY, dnsConfig=OBJECT, dnsPolicy=STRING, hostname=STRING, subdomain=STRING,
    nodeName=STRING, priorityClassName=STRING, runtimeClassName=STRING, schedulerName=STRING, serviceAccountName=STRING,
    restartPolicy=STRING, automountServiceAccountToken=BOOLEAN, enableServiceLinks=BOOLEAN, hostNetwork=BOOLEAN,
    hostPID=BOOLEAN, hostIPC=BOOLEAN, hostUsers=BOOLEAN, shareProcessNamespace=BOOLEAN,
    terminationGracePeriodSeconds=INTEGER, activeDeadlineSeconds=INTEGER, priority=INTEGER,
)  # fmt: skip

POD_TEMPLATE: Final = _object(metadata=_object(labels=STRING_MAP, annotations=STRING_MAP), spec=_POD_SPEC)
"""What `spec.podTemplate` may look like as far as we look into it."""

_DEFAULTS: Final = {"protocol": "TCP"}
"""Key fields that the API server fills in before it compares keys."""


def shape_problems(value: Any, shape: Shape, path: str) -> Iterator[Problem]:
    """Everything in `value` that is not of `shape`; nulls must have been taken out before."""
    if not _is_kind(value, shape.kind):
        yield Problem(path, f"must be {_article(shape.kind)}, not {_describe(value)}{_hint(value, shape.kind)}")
    elif shape.kind == "object":
        yield from _object_problems(value, shape, path)
    elif shape.kind == "map of strings":
        for key, item in value.items():
            yield from shape_problems(item, STRING, f"{path}.{key}")
    elif shape.kind == "list":
        yield from _list_problems(value, shape, path)


def _object_problems(value: Mapping[str, Any], shape: Shape, path: str) -> Iterator[Problem]:
    for name in shape.required:
        if name not in value:
            yield Problem(f"{path}.{name}", "is missing")
    for name, expected in shape.fields.items():
        if name in value:
            yield from shape_problems(value[name], expected, f"{path}.{name}")


def _list_problems(value: list[Any], shape: Shape, path: str) -> Iterator[Problem]:
    if shape.items is None:
        return
    for index, item in enumerate(value):
        yield from shape_problems(item, shape.items, f"{path}[{index}]")
    if shape.key:
        keys = Counter(merge_key(item, shape.key) for item in value if isinstance(item, Mapping))
        for key, count in keys.items():
            if count > 1:
                what = ", ".join(f"{name} {part}" for name, part in zip(shape.key, key, strict=True))
                yield Problem(path, f"{what} stands {count} times; keep one")


def merge_key(item: Mapping[str, Any], key: tuple[str, ...]) -> tuple[str, ...]:
    """The values by which the API server tells the items of a list apart; of paths, the directory that they mean. Two
    spellings of one are two mounts to it, and to the container one of them hides the other."""
    values = {name: str(item.get(name, _DEFAULTS.get(name, ""))) for name in key}
    return tuple(directory(value) if name == "mountPath" else value for name, value in values.items())


def directory(path: str) -> str:
    """An absolute path in its one spelling."""
    return f"/{posixpath.normpath(path).lstrip('/')}"


def _is_kind(value: Any, kind: Kind) -> bool:
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    checks = {
        "string": isinstance(value, str),
        "boolean": isinstance(value, bool),
        "integer": is_integer,
        "integer or string": is_integer or isinstance(value, str),
        "object": isinstance(value, Mapping),
        "map of strings": isinstance(value, Mapping),
        "list": isinstance(value, list),
    }
    return checks[kind]


def _article(kind: Kind) -> str:
    return f"{'an' if kind[0] in 'aio' else 'a'} {kind}"


def _describe(value: Any) -> str:
    names = {bool: "the boolean", int: "the number", float: "the number", str: "the string"}
    if type(value) in names:
        return f"{names[type(value)]} {str(value).lower() if isinstance(value, bool) else value!r}"
    return "a list" if isinstance(value, list) else "an object"


def _hint(value: Any, kind: Kind) -> str:
    if kind == "string" and isinstance(value, bool | int | float):
        return f'; quote it: "{str(value).lower() if isinstance(value, bool) else value}"'
    return ""
