"""Who may write: checks the bearer token of a PUT, offline.

With Kubernetes it is a service-account token made for this one deployment (the audience says which), checked against
issuer, subject and keys in the config file. Without, it must equal the content of a token file. With neither, writing
is off. `routes` reads the config file for each request, so that renewed keys count at once.
"""

import hmac
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import jwt

from dsd_runtime.protocol import TokenFileAuth, TokenReviewAuth

LEEWAY_SECONDS: Final = 120
"""How far the clocks of API server and node may be apart."""

MAX_TOKEN_BYTES: Final = 16 * 1024
ALGORITHMS: Final[Mapping[tuple[str, str | None], tuple[str, ...]]] = {
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("RSA", None): ("RS256", "RS384", "RS512"),
}
"""(key type, curve) -> algorithms. The key alone decides, never the token: a token that names HS256 and is signed with
the public key as a shared secret finds no algorithm here."""

WRITING_IS_OFF: Final = (
    "writing over HTTP is off: the config file has no auth. Add auth.tokenFile with the path of a file that holds a "
    "secret, or change the schedule in the config file itself"
)


class AuthError(Exception):
    """The request is refused. `status` is 401 where another token would help, else 403."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


def authorize(header: str | None, auth: TokenReviewAuth | TokenFileAuth | None, folder: Path) -> None:
    """Raise AuthError unless the Authorization `header` may write. A relative token file lies beside the config file,
    in `folder`."""
    if auth is None:
        raise AuthError(403, WRITING_IS_OFF)
    token = bearer_token(header)
    if isinstance(auth, TokenFileAuth):
        check_secret(token, folder / auth.token_file)
    else:
        check_service_account_token(token, auth)


def bearer_token(header: str | None) -> str:
    """The token in an Authorization header; raises AuthError."""
    scheme, _, token = (header or "").strip().partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        raise AuthError(401, "send the token as `Authorization: Bearer TOKEN`")
    if len(token) > MAX_TOKEN_BYTES:
        raise AuthError(401, f"the token is longer than {MAX_TOKEN_BYTES} bytes")
    return token


def check_secret(token: str, path: Path) -> None:
    """Compare with the content of the token file, in constant time; surrounding white space does not count."""
    try:
        with path.open("rb") as file:
            secret = file.read(MAX_TOKEN_BYTES + 1).strip()
    except OSError as error:
        raise AuthError(403, f"writing over HTTP is off: token file {path}: {error.strerror}") from error
    if not secret:
        raise AuthError(403, f"writing over HTTP is off: token file {path} is empty")
    if not hmac.compare_digest(token.encode(), secret):
        raise AuthError(401, "this is not the token of the token file")


def check_service_account_token(token: str, auth: TokenReviewAuth) -> None:
    """Check signature, times and issuer (401), then audience and subject (403)."""
    claims = verified_claims(token, auth)
    audiences = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
    if auth.audience not in audiences:
        raise AuthError(403, f"the token is for another audience; this deployment is {auth.audience}")
    if claims["sub"] != auth.subject:
        raise AuthError(403, f"the token is not of {auth.subject}")


def verified_claims(token: str, auth: TokenReviewAuth) -> dict[str, Any]:
    """The claims of a token that one of the issuer's keys has signed and that is in its time; raises AuthError."""
    try:
        header = jwt.get_unverified_header(token)
        key, algorithms = signing_key(auth.jwks, header.get("kid"))
        return jwt.decode(
            token,
            key,
            algorithms=list(algorithms),
            issuer=auth.issuer,
            leeway=LEEWAY_SECONDS,
            options={"require": ["exp", "iss", "aud", "sub"], "verify_aud": False},
        )
    except jwt.ExpiredSignatureError as error:
        raise AuthError(401, "the token has expired") from error
    except jwt.PyJWTError as error:
        raise AuthError(401, f"the token is not valid: {error}") from error
    except (ValueError, RecursionError) as error:
        raise AuthError(401, "the token is malformed") from error


def signing_key(jwks: Mapping[str, Any], kid: object) -> tuple[Any, tuple[str, ...]]:
    """The issuer's key with this id, and the algorithms its type allows; raises AuthError."""
    keys = jwks.get("keys")
    for entry in keys if isinstance(keys, list) else ():
        if not isinstance(entry, dict) or entry.get("kid") != kid:
            continue
        algorithms = ALGORITHMS.get((str(entry.get("kty")), entry.get("crv")))
        if algorithms is not None and entry.get("use", "sig") == "sig":
            return jwt.PyJWK(entry, algorithms[0]).key, algorithms
    raise AuthError(401, "the token is signed with a key that is not among the issuer's; it may be new, try again soon")
