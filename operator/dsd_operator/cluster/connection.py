"""How to reach the API server: inside the cluster by the mounted service account, else by a kubeconfig file.

One answer for both clients, ours (`client`) and kopf's (`handlers`), so that they cannot disagree.
"""

import os
from dataclasses import dataclass
from typing import Any, Final
from urllib.request import getproxies

from kubernetes.aio import client as kube_client
from kubernetes.aio import config as kube_config
from kubernetes.aio.config import ConfigException

_CONNECTIONS: Final = 50
"""To the API server, at most. Each has buffers of a quarter megabyte, and many passes at once would use hundreds."""


@dataclass(frozen=True)
class Connection:
    """Address and credentials, as kopf wants them. `token` changes: load again after a 401."""

    server: str
    ca_path: str | None
    verify: bool
    scheme: str | None
    token: str | None
    certificate_path: str | None
    key_path: str | None
    proxy: str | None
    trust_env: bool


class NoConfiguration(Exception):  # noqa: N818 - says what there is: none
    """There is no usable service account or kubeconfig; the text says what was tried."""


def in_cluster() -> bool:
    """Whether this process runs in a pod."""
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST"))


async def load_configuration() -> Any:
    """The Kubernetes client's configuration, read anew; raises NoConfiguration.

    Inside the cluster no proxy is used: NO_PROXY often names networks, which Python's clients do not understand, and a
    bearer token would go to whoever runs the proxy. The library's reload of the token file follows the wall clock,
    which may go back; `client` loads everything anew after a 401 instead.
    """
    configuration = kube_client.Configuration(connection_pool_maxsize=_CONNECTIONS)
    file = os.environ.get("KUBECONFIG") or None
    try:
        if in_cluster():
            kube_config.load_incluster_config(configuration)
        else:
            await kube_config.load_kube_config(
                config_file=file, client_configuration=configuration, persist_config=False
            )
        configuration.client_session_kwargs = {"trust_env": _trusts_environment()}
    except (ConfigException, OSError, ValueError) as error:
        source = "the pod's service account" if in_cluster() else file or "~/.kube/config"
        raise NoConfiguration(f"cannot read the address of the API server from {source}: {error}") from error
    return configuration


async def load_connection() -> Connection:
    """Read address and credentials anew."""
    configuration = await load_configuration()
    header = await configuration.get_api_key_with_prefix("BearerToken", alias="authorization") or ""
    scheme, _, token = header.rpartition(" ")
    return Connection(
        server=configuration.host,
        ca_path=configuration.ssl_ca_cert,
        verify=bool(configuration.verify_ssl),
        scheme=scheme or None,
        token=token or None,
        certificate_path=configuration.cert_file,
        key_path=configuration.key_file,
        proxy=configuration.proxy,
        trust_env=_trusts_environment(),
    )


def _trusts_environment() -> bool:
    """Whether to look for a proxy. Only where there is one: the look, which reads ~/.netrc, comes with each request."""
    return not in_cluster() and bool(getproxies())
