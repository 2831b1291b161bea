"""Which key a token may be signed with: confusion of algorithms, keys brought along, ids that are missing or double."""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from dsd_runtime.auth import MAX_TOKEN_BYTES, AuthError, authorize
from dsd_runtime.protocol import TokenReviewAuth
from tests.runtime import tokens

KEY = tokens.new_ec()
RSA_KEY = tokens.new_rsa()
OTHER = tokens.new_ec()
KEYS = (tokens.public_jwk(KEY, "one"), tokens.public_jwk(RSA_KEY, "two"))


def trusting(*keys: Mapping[str, Any]) -> TokenReviewAuth:
    """The auth of a config file with these keys."""
    return TokenReviewAuth(**tokens.auth_section(*[dict(key) for key in keys]))


def refusal(token: str, auth: TokenReviewAuth | None = None) -> str:
    """Why the token may not write, with its status where that is not 401; empty when it may."""
    try:
        authorize([f"Bearer {token}".encode()], auth or trusting(*KEYS), Path("/nonexistent"))
    except AuthError as error:
        return error.detail if error.status == 401 else f"{error.status} {error.detail}"
    return ""


def signed(key: Any, algorithm: str, **headers: Any) -> str:
    """A token with good claims and any header."""
    return jwt.encode(tokens.claims(), key, algorithm=algorithm, headers=headers)


def b64(data: bytes) -> str:
    """Base64 as in tokens."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def hmac_token(secret: bytes, **header: Any) -> str:
    """A token signed with a shared secret; PyJWT would refuse to use a public key for that."""
    signing_input = f"{b64(json.dumps(header).encode())}.{b64(json.dumps(tokens.claims()).encode())}"
    return f"{signing_input}.{b64(hmac.new(secret, signing_input.encode(), hashlib.sha256).digest())}"


@pytest.mark.parametrize("encoding", [Encoding.PEM, Encoding.DER])
@pytest.mark.parametrize(("key", "kid"), [(KEY, "one"), (RSA_KEY, "two")], ids=["EC", "RSA"])
def test_public_key_as_shared_secret(key: tokens.PrivateKey, kid: str, encoding: Encoding) -> None:
    public = key.public_key().public_bytes(encoding, PublicFormat.SubjectPublicKeyInfo)
    for name in ("HS256", "HS384", "HS512", "hs256"):
        assert "signature" in refusal(hmac_token(public, alg=name, kid=kid))


def test_rsa_key_presented_as_another_type() -> None:
    """The header says ES256, the key of that id is RSA, and the other way round."""
    assert "signature" in refusal(signed(KEY, "ES256", kid="two"))
    assert "signature" in refusal(signed(RSA_KEY, "RS256", kid="one"))
    assert not refusal(signed(RSA_KEY, "RS256", kid="two"))


def test_key_allows_only_its_own_algorithm() -> None:
    bare = {name: value for name, value in KEYS[1].items() if name != "alg"}
    assert not refusal(signed(RSA_KEY, "RS512", kid="two"), trusting(bare))
    assert refusal(signed(RSA_KEY, "RS512", kid="two"))
    assert refusal(signed(RSA_KEY, "PS256", kid="two"), trusting(bare))


@pytest.mark.parametrize(
    "changes",
    [
        {"use": "enc"},
        {"key_ops": ["encrypt"]},
        {"alg": "HS256"},
        {"alg": 7},
        {"crv": {"P-256": 1}},
        {"kty": ["EC"]},
        {"kty": "oct", "k": "AAAA"},
        {"x": "!"},
        {"x": 7},
        {"y": None},
    ],
)
def test_key_that_is_not_for_this(changes: dict[str, Any]) -> None:
    assert refusal(tokens.mint(KEY), trusting(KEYS[0] | changes))


def test_key_operations_that_fit() -> None:
    assert not refusal(tokens.mint(KEY), trusting(KEYS[0] | {"key_ops": ["verify"]}))


@pytest.mark.parametrize("curve", [ec.SECP384R1(), ec.SECP521R1()], ids=["ES384", "ES512"])
def test_larger_curves(curve: ec.EllipticCurve) -> None:
    key = ec.generate_private_key(curve)
    name = {"secp384r1": "ES384", "secp521r1": "ES512"}[curve.name]
    auth = trusting(tokens.public_jwk(key, "big") | {"alg": name})
    assert not refusal(signed(key, name, kid="big"), auth)
    assert refusal(signed(KEY, "ES256", kid="big"), auth)


@pytest.mark.parametrize("kid", [None, "", 7, ["one"], {"one": 1}, "ONE", "one ", "../one", "three", "0" * 9000])
def test_key_id_that_names_none(kid: Any) -> None:
    """Also where there is only one key to choose from."""
    header = b64(json.dumps({"alg": "ES256", "kid": kid}).encode())
    _, claims, signature = tokens.mint(KEY).split(".")
    assert refusal(f"{header}.{claims}.{signature}", trusting(KEYS[0]))
    without = jwt.encode(tokens.claims(), KEY, algorithm="ES256")
    assert "kid" in refusal(without, trusting(KEYS[0]))


def test_key_without_id_is_no_wildcard() -> None:
    nameless = {name: value for name, value in KEYS[0].items() if name != "kid"}
    assert refusal(tokens.mint(KEY), trusting(nameless))
    assert refusal(jwt.encode(tokens.claims(), KEY, algorithm="ES256"), trusting(nameless))


@pytest.mark.parametrize("order", [1, -1])
def test_key_id_that_is_given_twice(order: int) -> None:
    """Either key counts, of whatever type, in whatever order; a third one does not."""
    twice = trusting(*[KEYS[0], tokens.public_jwk(RSA_KEY, "one"), {"kid": "one", "kty": "EC"}][::order])
    assert not refusal(signed(KEY, "ES256", kid="one"), twice)
    assert not refusal(signed(RSA_KEY, "RS256", kid="one"), twice)
    assert refusal(signed(OTHER, "ES256", kid="one"), twice)


@pytest.mark.parametrize("kid", ["one", "nine"])
def test_key_that_the_token_brings_along(kid: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither embedded nor by address; and nothing is fetched."""
    monkeypatch.setattr("socket.socket", None)
    jwk = tokens.public_jwk(OTHER, kid)
    for header in ({"jwk": jwk}, {"jku": "https://127.0.0.1:1/"}, {"x5u": "file:///etc/x"}, {"x5c": ["AAAA"]}, jwk):
        assert refusal(signed(OTHER, "ES256", **({"kid": kid} | header | {"alg": "ES256"})))
        assert not refusal(signed(KEY, "ES256", **(header | {"kid": "one", "alg": "ES256"})))


@pytest.mark.parametrize(
    "header",
    [
        {"crit": ["exp"], "exp": 1},
        {"crit": []},
        {"crit": "b64"},
        {"crit": ["b64"], "b64": True},
        {"b64": False},
        {"b64": True},
        {"crit": None},
    ],
)
def test_critical_headers(header: dict[str, Any]) -> None:
    """We have no extension, so a token that insists on one is not for us, however well it is signed."""
    encoded = b64(json.dumps({"alg": "ES256", "kid": "one"} | header).encode())
    signing_input = f"{encoded}.{b64(json.dumps(tokens.claims()).encode())}"
    algorithm = jwt.algorithms.ECAlgorithm(jwt.algorithms.ECAlgorithm.SHA256)
    signature = algorithm.sign(signing_input.encode(), KEY)
    assert refusal(f"{signing_input}.{b64(signature)}")


def test_signature_that_is_changed_cut_or_empty() -> None:
    token = tokens.mint(KEY)
    head, signature = token.rsplit(".", 1)
    flipped = ("B" if signature[0] == "A" else "A") + signature[1:]
    zeros = b64(bytes(64))
    for wrong in (flipped, signature[:-4], "", zeros, signature + "AAAA"):
        assert refusal(f"{head}.{wrong}")
    assert not refusal(token)


def test_claims_of_one_token_with_the_signature_of_another() -> None:
    one, two = tokens.mint(KEY), tokens.mint(KEY, jti="2")
    assert "signature" in refusal(".".join([*one.split(".")[:2], two.split(".")[2]]))


def test_nothing_is_decoded_of_a_token_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    decode = Mock(wraps=jwt.get_unverified_header)
    monkeypatch.setattr(jwt, "get_unverified_header", decode)
    assert "longer" in refusal("a" * (MAX_TOKEN_BYTES + 1))
    assert "longer" in refusal("a" * 50_000_000)
    decode.assert_not_called()
    assert "malformed" in refusal("a" * MAX_TOKEN_BYTES)
    decode.assert_called_once()


def test_only_a_key_that_the_token_names_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a large key set does not make a forged token expensive."""
    decode = Mock(wraps=jwt.decode)
    monkeypatch.setattr(jwt, "decode", decode)
    many = trusting(*[tokens.public_jwk(KEY, f"key-{i}") for i in range(100)])
    assert "signature" in refusal(signed(OTHER, "ES256", kid="key-70"), many)
    assert refusal(signed(OTHER, "ES256", kid="unknown"), many)
    assert refusal("a.b.c", many)
    decode.assert_called_once()


@pytest.mark.parametrize(
    "token",
    [
        jwt.encode({"hunter2-claim": 1}, KEY, algorithm="ES256", headers={"kid": "one"}),
        tokens.mint(KEY, iss="hunter2-claim"),
        tokens.mint(KEY, exp="hunter2-claim"),
        jwt.encode(tokens.claims(), KEY, algorithm="ES256", headers={"kid": "hunter2-header"}),
        hmac_token(b"x", alg="hunter2-header", kid="one"),
        hmac_token(b"x", alg="ES256", kid="one", crit=["hunter2-header"]),
        b64(b'{"hunter2-header') + ".x.y",
        "hunter2-header",
    ],
)
def test_refusal_repeats_nothing_of_the_token(token: str, caplog: pytest.LogCaptureFixture) -> None:
    detail = refusal(token)
    assert detail
    for text in (detail, caplog.text):
        assert "hunter2" not in text
        assert token not in text


def test_words_of_the_library_are_not_repeated() -> None:
    """They differ with its version, and may repeat what it was given one day."""
    for claims in ({"exp": "soon"}, {"nbf": "soon"}, {"iat": "soon"}):
        assert refusal(tokens.mint(KEY, **claims)) == "the token is malformed"


def test_replay_against_another_deployment() -> None:
    """A token is good for the one deployment that its audience names, whoever got hold of it."""
    section = tokens.auth_section(*KEYS) | {"audience": "dsd-operator.io/team-b/demo"}
    with pytest.raises(AuthError, match="another audience") as error:
        authorize([f"Bearer {tokens.mint(KEY)}".encode()], TokenReviewAuth(**section), Path())
    assert error.value.status == 403
    authorize([f"Bearer {tokens.mint(KEY, aud=section['audience'])}".encode()], TokenReviewAuth(**section), Path())
