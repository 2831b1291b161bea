"""kopf's settings and its login, which is ours: one answer for both clients to where the API server is."""

import random
from collections.abc import Iterator
from typing import Any, Final

import kopf

from dsd_operator.api.constants import GROUP
from dsd_operator.cluster.connection import load_connection
from dsd_operator.handlers.watch import CHILDREN
from dsd_operator.render.labels import WATCHED_SELECTOR

_BACKOFF_LIMIT_SECONDS: Final = 30.0


class Backoffs:
    """Delays between tries of a request, without end: an operator that gives up has to be restarted by somebody."""

    def __iter__(self) -> Iterator[float]:
        delay = 1.0
        while True:
            yield delay * random.uniform(0.8, 1.2)
            delay = min(2 * delay, _BACKOFF_LIMIT_SECONDS)


def settings() -> kopf.OperatorSettings:
    """kopf's settings: no writes, server-side label selectors, streams that are given up when they fall silent."""
    made = kopf.OperatorSettings()
    # Never written; but kopf removes this finalizer where it finds it, and its default belongs to other operators too.
    made.persistence.finalizer = f"{GROUP}/never-set"
    made.posting.enabled = False
    made.scanning.disabled = True  # no rights on CRDs and namespaces; `app` waits for the CRD
    made.watching.server_timeout = 300
    made.watching.client_timeout = 310
    made.watching.connect_timeout = 30
    made.watching.reconnect_backoff = 1.0
    # A thousand resources have some thousand pods, and a parsed pod takes 50 kB: neither all of them at once, nor each
    # for longer than it takes to look at it.
    made.watching.chunk_size = 100
    made.queueing.idle_timeout = 0.2
    made.networking.request_timeout = 30
    made.networking.error_backoffs = Backoffs()
    made.networking.enforce_retry_after = True
    for child in CHILDREN:
        made.watching.label_selectors[child] = WATCHED_SELECTOR
    return made


async def login(**_: Any) -> kopf.ConnectionInfo:
    """Address and credentials, read anew each time that kopf asks: after a 401 the token file holds a newer one."""
    found = await load_connection()
    return kopf.ConnectionInfo(
        server=found.server,
        ca_path=found.ca_path,
        insecure=not found.verify,
        scheme=found.scheme,
        token=found.token,
        certificate_path=found.certificate_path,
        private_key_path=found.key_path,
        proxy_url=found.proxy,
        trust_env=found.trust_env,
    )


def registry() -> kopf.OperatorRegistry:
    """An empty registry that knows how to log in. Not kopf's global one: what is in it is seen here."""
    made = kopf.OperatorRegistry()
    kopf.on.login(id="login", registry=made)(login)
    return made
