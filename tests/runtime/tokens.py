"""Tokens like those of a Kubernetes API server, and the key set that goes with them."""

import json
import time
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

ISSUER = "https://kubernetes.default.svc"
AUDIENCE = "dsd-operator.io/team-a/demo"
SUBJECT = "system:serviceaccount:dsd-system:dsd-operator"

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def new_ec() -> ec.EllipticCurvePrivateKey:
    """An ES256 key."""
    return ec.generate_private_key(ec.SECP256R1())


def new_rsa() -> rsa.RSAPrivateKey:
    """An RS256 key."""
    return rsa.generate_private_key(65537, 2048)


def public_jwk(key: PrivateKey, kid: str) -> dict[str, Any]:
    """The public half as a JWK."""
    if isinstance(key, rsa.RSAPrivateKey):
        text, algorithm = RSAAlgorithm.to_jwk(key.public_key()), "RS256"
    else:
        text, algorithm = ECAlgorithm.to_jwk(key.public_key()), "ES256"
    jwk: dict[str, Any] = json.loads(text)
    return jwk | {"kid": kid, "use": "sig", "alg": algorithm}


def auth_section(*jwks: dict[str, Any]) -> dict[str, Any]:
    """The auth part of a config file that trusts `jwks`."""
    return {"issuer": ISSUER, "audience": AUDIENCE, "subject": SUBJECT, "jwks": {"keys": list(jwks)}}


def claims(**changes: Any) -> dict[str, Any]:
    """Claims that are good for ten minutes, changed by `changes`; None removes one."""
    now = int(time.time())
    good = {"iss": ISSUER, "aud": [AUDIENCE], "sub": SUBJECT, "exp": now + 600, "iat": now, "nbf": now}
    return {name: value for name, value in (good | changes).items() if value is not None}


def mint(key: PrivateKey, kid: str = "one", **changes: Any) -> str:
    """A token signed with `key`."""
    algorithm = "RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256"
    return jwt.encode(claims(**changes), key, algorithm=algorithm, headers={"kid": kid})
