"""What pods need to know to trust the operator: issuer, keys, audience, subject. See `cluster.tokens` for our side."""

import logging

from dsd_operator.api.constants import GROUP
from dsd_operator.cluster.errors import ApiError
from dsd_operator.cluster.keys import Keys
from dsd_operator.reconcile.queue import Key
from dsd_runtime.protocol import ConfigFile, TokenReviewAuth

_log = logging.getLogger(__name__)


def audience(key: Key) -> str:
    """The audience of tokens for one resource's pods, and for no others."""
    return f"{GROUP}/{key.namespace}/{key.name}"


async def auth_for(key: Key, keys: Keys, subject: str, stored: ConfigFile | None) -> TokenReviewAuth | None:
    """The config file's `auth`. While the keys cannot be read, pods keep theirs: without any they accept nothing."""
    try:
        key_set = await keys.current()
    except ApiError as error:
        _log.warning("Cannot read the API server's signing keys: %s", error.message)
        return stored.auth if stored is not None and isinstance(stored.auth, TokenReviewAuth) else None
    return TokenReviewAuth(issuer=key_set.issuer, audience=audience(key), subject=subject, jwks=key_set.jwks)
