"""Who may write: checks the bearer token of a PUT, offline.

With Kubernetes it is a service-account token made for this one deployment (the audience says which), checked against
issuer, subject and keys in the config file. Without, it must equal the content of a token file. With neither, writing
is off. `access` brings the auth part of the config file as it is now, so that renewed keys count at once.

No text of a refusal comes from the token, nor from the library that reads it: answers and logs cannot repeat a secret.
"""

import hashlib
import hmac
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import jwt

from dsd_runtime.protocol import TokenFileAuth, TokenReviewAuth

LEEWAY_SECONDS: Final = 120
"""How far the clocks of API server and node may be apart."""

MAX_LIFETIME_SECONDS: Final = 24 * 3600
"""Longest time between a token's `iat` and `exp`. The operator asks for 10 minutes, and an API server may grant more;
one that was made to be kept, such as the endless token of a Secret, is not meant for this."""

MAX_TOKEN_BYTES: Final = 16 * 1024
"""A service-account token has about 1,000. A longer one is refused before anything of it is decoded."""

ALGORITHMS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("RSA", "None"): ("RS256", "RS384", "RS512"),
}
"""(key type, curve) -> algorithms. The key alone decides, never the token: a token that names HS256 and is signed with
the public key as a shared secret finds no algorithm here."""

NO_TOKEN: Final = "send the token as `Authorization: Bearer TOKEN`"
WRITING_IS_OFF: Final = (
    "writing over HTTP is off: the config file has no auth. Add auth.tokenFile with the path of a file that holds a "
    "secret, or change the schedule in the config file itself"
)
UNKNOWN_KEY: Final = "the token is signed with a key that is not among the issuer's; it may be new, try again soon"
MALFORMED: Final = "the token is malformed"

UNUSABLE_KEY: Final = (jwt.InvalidSignatureError, jwt.InvalidAlgorithmError, jwt.InvalidKeyError, jwt.PyJWKError)
"""PyJWT's errors after which another key of the same id may still fit."""

NOT_A_TOKEN: Final = (ValueError, TypeError, OverflowError, RecursionError)
"""What hostile JSON, base64 and numbers raise inside PyJWT, in one version or another."""


class AuthError(Exception):
    """The request is refused. `status` is 401 where another token would help, else 403."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


def authorize(headers: Sequence[bytes], auth: TokenReviewAuth | TokenFileAuth | None, folder: Path) -> None:
    """Raise AuthError unless a request with these Authorization headers may write. A relative token file lies beside
    the config file, in `folder`."""
    if auth is None:
        raise AuthError(403, WRITING_IS_OFF)
    token = bearer_token(headers)
    if isinstance(auth, TokenFileAuth):
        check_secret(token, folder / auth.token_file)
    else:
        check_service_account_token(token, auth)


def bearer_token(headers: Sequence[bytes]) -> bytes:
    """The token in the one Authorization header; raises AuthError. Of several, proxies and servers take one or the
    other: whom the request is from would depend on the way it came."""
    if len(headers) != 1:
        raise AuthError(401, f"{NO_TOKEN}, once" if headers else NO_TOKEN)
    scheme, _, token = headers[0].strip().partition(b" ")
    token = token.strip()
    if scheme.lower() != b"bearer" or not token:
        raise AuthError(401, NO_TOKEN)
    if len(token) > MAX_TOKEN_BYTES:
        raise AuthError(401, f"the token is longer than {MAX_TOKEN_BYTES} bytes")
    return token


def check_secret(token: bytes, path: Path) -> None:
    """Compare with the content of the token file; surrounding white space does not count.

    In constant time, and as digests, so that the time does not even depend on the length of the secret.
    """
    secret = read_secret(path)
    if not hmac.compare_digest(hashlib.sha256(token).digest(), hashlib.sha256(secret).digest()):
        raise AuthError(401, "this is not the token of the token file")


def read_secret(path: Path) -> bytes:
    """The content of the token file, read for each request, so that a new secret counts at once; raises AuthError."""
    off = f"writing over HTTP is off: token file {path}"
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # to open a pipe would wait for somebody who writes into it
            raise AuthError(403, f"{off} is not a regular file")
        with path.open("rb") as file:
            content = file.read(MAX_TOKEN_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise AuthError(403, f"{off}: {reason}") from error
    if len(content) > MAX_TOKEN_BYTES:
        raise AuthError(403, f"{off} is larger than {MAX_TOKEN_BYTES} bytes")
    if not content.strip():
        raise AuthError(403, f"{off} is empty")
    return content.strip()


def check_service_account_token(token: bytes, auth: TokenReviewAuth) -> None:
    """Check signature, times and issuer (401), then audience and subject (403)."""
    claims = verified_claims(token, auth)
    audiences = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
    if auth.audience not in audiences:
        raise AuthError(403, f"the token is for another audience; this deployment is {auth.audience}")
    if claims["sub"] != auth.subject:
        raise AuthError(403, f"the token is not of {auth.subject}")


def verified_claims(token: bytes, auth: TokenReviewAuth) -> dict[str, Any]:
    """The claims of a token that one of the issuer's keys has signed and that is in its time; raises AuthError."""
    refusal = AuthError(401, UNKNOWN_KEY)
    for entry, algorithms in signing_keys(auth.jwks, key_id(token)):
        try:
            return decode(token, jwt.PyJWK(entry, algorithms[0]).key, algorithms, auth.issuer)
        except UNUSABLE_KEY:
            refusal = AuthError(401, "the token's signature is not that of the issuer's key it names")
        except jwt.PyJWTError as error:
            raise AuthError(401, reason(error, auth)) from None
        except NOT_A_TOKEN:
            refusal = AuthError(401, MALFORMED)
    raise refusal


def key_id(token: bytes) -> str:
    """Which key the token says it is signed with; raises AuthError.

    Nothing else in its header counts: not a key it brings along (`jwk`, `x5c`), not an address of one (`jku`, `x5u`).
    """
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, *NOT_A_TOKEN):
        raise AuthError(401, MALFORMED) from None
    if "crit" in header or "b64" in header:  # RFC 7515, 4.1.11: refuse what asks for extensions one does not have
        raise AuthError(401, "the token asks for extensions of its format; none is supported")
    kid = header.get("kid")
    if not isinstance(kid, str) or not kid:
        raise AuthError(401, "the token does not say which key it is signed with (kid)")
    return kid


def signing_keys(jwks: Mapping[str, Any], kid: str) -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
    """The issuer's keys with this id, and the algorithms that each allows. An id that is given twice, as while keys
    are exchanged, means either key."""
    keys = jwks.get("keys")
    for entry in keys if isinstance(keys, list) else ():
        if isinstance(entry, dict) and entry.get("kid") == kid and (algorithms := algorithms_of(entry)):
            yield entry, algorithms


def algorithms_of(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """What may be signed with a key: what its type allows and its own `alg`, `use` and `key_ops` leave of that."""
    allowed = ALGORITHMS.get((str(entry.get("kty")), str(entry.get("crv"))), ())
    if entry.get("use", "sig") != "sig" or "verify" not in str(entry.get("key_ops", "verify")):
        return ()
    return tuple(name for name in allowed if entry.get("alg", name) == name)


def decode(token: bytes, key: Any, algorithms: Sequence[str], issuer: str) -> dict[str, Any]:
    """The claims, if signature, times and issuer are right; raises PyJWTError, or what is in NOT_A_TOKEN."""
    claims: dict[str, Any] = jwt.decode(
        token,
        key,
        algorithms=list(algorithms),
        issuer=issuer,
        leeway=LEEWAY_SECONDS,
        options={"require": ["exp", "iat", "iss", "aud", "sub"], "verify_aud": False},
    )
    if int(claims["exp"]) - int(claims["iat"]) > MAX_LIFETIME_SECONDS:
        raise AuthError(401, f"the token lives longer than {MAX_LIFETIME_SECONDS // 3600} hours; ask for a short one")
    return claims


def reason(error: jwt.PyJWTError, auth: TokenReviewAuth) -> str:
    """Why a signed token is refused, in our words."""
    if isinstance(error, jwt.ExpiredSignatureError):
        return "the token has expired"
    if isinstance(error, jwt.ImmatureSignatureError):
        return f"the token is not valid yet; clocks may be {LEEWAY_SECONDS} s apart"
    if isinstance(error, jwt.InvalidIssuerError):
        return f"the token is of another issuer; this deployment trusts {auth.issuer}"
    if isinstance(error, jwt.MissingRequiredClaimError):
        return f"the token lacks the claim {error.claim}"
    return MALFORMED
