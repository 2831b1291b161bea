"""Who may write: the bearer token, against a key set or a token file."""

import base64
import hashlib
import hmac
import json
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from dsd_runtime.auth import LEEWAY_SECONDS, MAX_LIFETIME_SECONDS, MAX_TOKEN_BYTES, AuthError, authorize
from dsd_runtime.protocol import TokenFileAuth, TokenReviewAuth
from tests.runtime import tokens

KEY = tokens.new_ec()
RSA_KEY = tokens.new_rsa()
AUTH = TokenReviewAuth(**tokens.auth_section(tokens.public_jwk(KEY, "one"), tokens.public_jwk(RSA_KEY, "two")))
NOWHERE = Path("/nonexistent")


def status_of(token: str | None, auth: TokenReviewAuth | TokenFileAuth | None = AUTH, folder: Path = NOWHERE) -> int:
    """200 when the token may write, else the status of the refusal."""
    try:
        authorize([] if token is None else [f"Bearer {token}".encode()], auth, folder)
    except AuthError as error:
        return error.status if error.detail else 0
    return 200


def b64(data: bytes) -> str:
    """Base64 as in tokens."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def forged(header: dict[str, Any], secret: bytes | None) -> str:
    """A token with any header, signed by HMAC-SHA256 or not at all."""
    signed = f"{b64(json.dumps(header).encode())}.{b64(json.dumps(tokens.claims()).encode())}"
    signature = b64(hmac.new(secret, signed.encode(), hashlib.sha256).digest()) if secret is not None else ""
    return f"{signed}.{signature}"


@pytest.mark.parametrize(("key", "kid"), [(KEY, "one"), (RSA_KEY, "two")], ids=["EC", "RSA"])
def test_good_token(key: tokens.PrivateKey, kid: str) -> None:
    assert status_of(tokens.mint(key, kid)) == 200


def after(seconds: int) -> timedelta:
    """A time relative to when the token is minted: tests are collected minutes before they run."""
    return timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"exp": after(-LEEWAY_SECONDS - 5)}, 401),
        ({"exp": after(-LEEWAY_SECONDS + 60)}, 200),
        ({"nbf": after(LEEWAY_SECONDS + 60)}, 401),
        ({"nbf": after(LEEWAY_SECONDS - 60), "iat": after(LEEWAY_SECONDS - 60)}, 200),
        ({"exp": None}, 401),
        ({"exp": "soon"}, 401),
        ({"iss": "https://elsewhere"}, 401),
        ({"iss": None}, 401),
        ({"aud": ["dsd-operator.io/team-a/other"]}, 403),
        ({"aud": "dsd-operator.io/team-a/demo"}, 200),
        ({"aud": ["https://kubernetes.default.svc", tokens.AUDIENCE]}, 200),
        ({"aud": []}, 403),
        ({"aud": [7]}, 403),
        ({"aud": {"dsd-operator.io/team-a/demo": 1}}, 403),
        ({"aud": None}, 401),
        ({"sub": "system:serviceaccount:team-a:default"}, 403),
        ({"sub": None}, 401),
        ({"sub": [tokens.SUBJECT]}, 401),
        ({"sub": tokens.SUBJECT.upper()}, 403),
        ({"aud": tokens.AUDIENCE + "x"}, 403),
        ({"aud": tokens.AUDIENCE[:-1]}, 403),
        ({"iss": tokens.ISSUER + "/"}, 401),
        ({"iss": ""}, 401),
        ({"iat": None}, 401),
        ({"iat": after(LEEWAY_SECONDS + 60)}, 401),
        ({"iat": "then"}, 401),
        ({"nbf": "then"}, 401),
        ({"nbf": None}, 200),
        ({"exp": True}, 401),
        ({"exp": []}, 401),
        ({"exp": {}}, 401),
        ({"exp": float("inf")}, 401),
        ({"exp": float("nan")}, 401),
        ({"exp": 10**400}, 401),
        ({"exp": after(MAX_LIFETIME_SECONDS)}, 200),
        ({"exp": after(MAX_LIFETIME_SECONDS + 60)}, 401),
        ({"exp": after(60), "iat": after(60 - MAX_LIFETIME_SECONDS)}, 200),
        ({"exp": after(60), "iat": after(-MAX_LIFETIME_SECONDS)}, 401),
        ({"exp": after(365 * 24 * 3600)}, 401),
    ],
)
def test_claims(changes: dict[str, Any], status: int) -> None:
    now = int(time.time())
    times = {name: now + int(value.total_seconds()) for name, value in changes.items() if isinstance(value, timedelta)}
    assert status_of(tokens.mint(KEY, **changes | times)) == status


def test_signature_of_another_key() -> None:
    assert status_of(tokens.mint(tokens.new_ec())) == 401


def test_unknown_key_id() -> None:
    assert status_of(tokens.mint(KEY, "three")) == 401
    assert status_of(jwt.encode(tokens.claims(), KEY, algorithm="ES256")) == 401


def test_key_id_of_a_key_of_another_type() -> None:
    assert status_of(tokens.mint(KEY, "two")) == 401
    assert status_of(tokens.mint(RSA_KEY, "one")) == 401


@pytest.mark.parametrize("name", ["none", "None", "NONE", "", "nOnE"])
def test_algorithm_none(name: str) -> None:
    assert status_of(forged({"alg": name, "typ": "JWT", "kid": "one"}, None)) == 401


@pytest.mark.parametrize("kid", ["one", "two"])
def test_public_key_as_hmac_secret(kid: str) -> None:
    """The classic: sign with HS256 and the public key, which everybody has, as the secret."""
    key = KEY if kid == "one" else RSA_KEY
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    for secret in (public, public.strip(), json.dumps(tokens.public_jwk(key, kid)).encode(), b""):
        assert status_of(forged({"alg": "HS256", "typ": "JWT", "kid": kid}, secret)) == 401


def test_symmetric_key_in_the_key_set_is_not_used() -> None:
    secret = b"0123456789abcdef0123456789abcdef"
    auth = TokenReviewAuth(**tokens.auth_section({"kty": "oct", "k": b64(secret), "kid": "one", "alg": "HS256"}))
    assert status_of(forged({"alg": "HS256", "kid": "one"}, secret), auth) == 401


def test_embedded_key_is_not_used() -> None:
    """A key inside the token's own header must not count."""
    other = tokens.new_ec()
    headers = {"kid": "nine", "jwk": tokens.public_jwk(other, "nine"), "jku": "https://127.0.0.1:1/keys"}
    assert status_of(jwt.encode(tokens.claims(), other, algorithm="ES256", headers=headers)) == 401


def test_rotation_needs_only_the_new_key_set() -> None:
    new = tokens.new_ec()
    token = tokens.mint(new, "new")
    assert status_of(token) == 401
    both = tokens.auth_section(tokens.public_jwk(KEY, "one"), tokens.public_jwk(new, "new"))
    assert status_of(token, TokenReviewAuth(**both)) == 200


@pytest.mark.parametrize(
    "jwks",
    [{}, {"keys": None}, {"keys": [None, 7, {}]}, {"keys": [{"kid": "one", "kty": "EC", "crv": "P-256", "x": "!"}]}],
)
def test_unusable_key_set(jwks: dict[str, Any]) -> None:
    auth = TokenReviewAuth(**(tokens.auth_section() | {"jwks": jwks}))
    assert status_of(tokens.mint(KEY), auth) == 401


@pytest.mark.parametrize("token", ["x", "a.b", "a.b.c", "....", "é.ü.ß", "\x00", "eyJhbGciOiJFUzI1NiJ9..", "[" * 9000])
def test_rubbish(token: str) -> None:
    assert status_of(token) == 401


def test_oversized_token() -> None:
    assert status_of("a" * (MAX_TOKEN_BYTES + 1)) == 401
    assert status_of(tokens.mint(KEY, padding="x" * MAX_TOKEN_BYTES)) == 401


@pytest.mark.parametrize(
    "headers",
    [[], [b""], [b"Bearer"], [b"Bearer "], [b"Basic abc"], [b"token"], [b"Bearer\t%s"], [b"DPoP %s"], [b"Bearer,%s"]],
)
def test_no_bearer_token(headers: list[bytes]) -> None:
    good = tokens.mint(KEY).encode()
    with pytest.raises(AuthError, match="Bearer TOKEN") as error:
        authorize([header.replace(b"%s", good) for header in headers], AUTH, NOWHERE)
    assert error.value.status == 401


def test_several_authorization_headers() -> None:
    """Whoever reads the first and whoever reads the last would see two different senders."""
    good = f"Bearer {tokens.mint(KEY)}".encode()
    for headers in ([good, good], [good, b"Basic abc"], [b"", good]):
        with pytest.raises(AuthError, match="once") as error:
            authorize(headers, AUTH, NOWHERE)
        assert error.value.status == 401
    authorize([good], AUTH, NOWHERE)


def test_scheme_is_case_insensitive() -> None:
    for scheme in ("bearer", "BEARER", "bEaReR"):
        authorize([f"{scheme}  {tokens.mint(KEY)} ".encode()], AUTH, NOWHERE)


def test_without_auth_writing_is_off() -> None:
    with pytest.raises(AuthError, match="tokenFile") as error:
        authorize([f"Bearer {tokens.mint(KEY)}".encode()], None, NOWHERE)
    assert error.value.status == 403
