"""The routes of a real vLLM server behind an API key, below a root path; at full size with TLS and client certificates.

`make test` uses the engine that others use too, over plain HTTP; with the marker `long` each test runs once more on a
server of its own that asks for client certificates.
"""

import json
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from dsd_runtime.protocol import ProblemDocument
from tests.runtime import tokens
from tests.runtime.certificates import Authority, Pair
from tests.runtime.conftest import COMMON, FIRST, NGRAM, Engine, wire
from tests.runtime.examples import OWNER
from tests.runtime.server import API_KEY, Server, wait_until

pytestmark = pytest.mark.engine


@dataclass
class Guarded:
    """The server, and what is needed to write to it."""

    server: Server
    config: Path
    key: tokens.PrivateKey = field(default_factory=tokens.new_ec)
    authority: Authority = None  # type: ignore[assignment]  # only with TLS
    issuer: str = tokens.ISSUER
    number: int = 5
    sent: list[str] = field(default_factory=list)

    def trust(self, key: tokens.PrivateKey, issuer: str) -> None:
        """Let the config file name this issuer and key."""
        self.key, self.issuer = key, issuer
        self.number += 1
        auth = tokens.auth_section(tokens.public_jwk(key, "one")) | {"issuer": issuer}
        content = {"revision": {"owner": OWNER, "number": self.number}, "ranges": wire(FIRST), "auth": auth}
        partial = self.config.with_suffix(".partial")
        partial.write_text(json.dumps(content))
        partial.replace(self.config)

    def token(self, **claims: Any) -> str:
        """A token that may write, but for `claims`; kept, to look for it in the log."""
        token = tokens.mint(self.key, **{"iss": self.issuer} | claims)
        self.sent.append(token)
        return token

    def put(self, *headers: tuple[str, bytes | str], path: str = "/dsd/v1/schedule") -> httpx.Response:
        """PUT a good body with any headers."""
        self.number += 1
        body = {"revision": {"owner": OWNER, "number": self.number}, "ranges": wire([(1, 64, 2)])}
        raw = [(name.encode(), value.encode() if isinstance(value, str) else value) for name, value in headers]
        return self.server.client.put(path, content=json.dumps(body), headers=raw)

    def status_of(self, *authorization: bytes | str) -> int:
        """The status of a PUT with these Authorization headers."""
        answer = self.put(*[("authorization", value) for value in authorization])
        if answer.status_code != 200:
            ProblemDocument.model_validate_json(answer.content)
        return answer.status_code


def context(authority: Authority, client: Pair | None) -> ssl.SSLContext:
    """TLS that trusts `authority`, with a certificate of one's own."""
    made = ssl.create_default_context(cafile=str(authority.pair.certificate))
    if client is not None:
        made.load_cert_chain(client.certificate, client.key)
    return made


TLS = pytest.param("tls", marks=pytest.mark.long)
WITH_TLS = pytest.mark.parametrize("guarded", [TLS], indirect=True)


@pytest.fixture(scope="module", params=["plain", TLS])
def guarded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """One server for all tests of this file."""
    if request.param == "tls":
        models = request.getfixturevalue("models")
        yield from with_certificates(models, tmp_path_factory.mktemp("guarded"))
        return
    engine: Engine = request.getfixturevalue("engine")
    guarded = Guarded(engine.server, engine.config, engine.key, number=engine.next_number())
    guarded.trust(guarded.key, guarded.issuer)
    try:
        yield guarded
    finally:
        engine.count_on(guarded.number)
        engine.write_config(engine.next_number(), FIRST)
        wait_until("it trusts its own key again", lambda: engine.in_use() == FIRST)


def with_certificates(models: Path, folder: Path) -> Iterator[Guarded]:
    """A server of its own that talks to nobody without a certificate of its authority."""
    authority = Authority(folder)
    pair = authority.issue("server")
    config = folder / "config.yaml"
    guarded = Guarded(None, config, authority=authority)  # type: ignore[arg-type]
    guarded.trust(guarded.key, guarded.issuer)
    arguments = [str(models / "target"), *COMMON, "--max-num-seqs", "16", "--dsd-config", str(config)]
    arguments += ["--speculative-config", json.dumps(NGRAM), "--api-key", API_KEY, "--root-path", "/llm"]
    arguments += ["--ssl-certfile", str(pair.certificate), "--ssl-keyfile", str(pair.key)]
    arguments += ["--ssl-ca-certs", str(authority.pair.certificate), "--ssl-cert-reqs", str(int(ssl.CERT_REQUIRED))]
    guarded.server = server = Server(folder, arguments)
    server.client.close()
    server.client = httpx.Client(
        base_url=f"https://127.0.0.1:{server.port}",
        verify=context(authority, authority.issue("client")),
        timeout=120,
        trust_env=False,
    )
    try:
        server.wait_healthy()
        yield guarded
    finally:
        server.stop()


@pytest.mark.parametrize("prefix", ["", "/llm"])
def test_good_token(guarded: Guarded, prefix: str) -> None:
    assert guarded.server.client.get(f"{prefix}/dsd/v1/status").status_code == 200
    answer = guarded.put(("authorization", f"Bearer {guarded.token()}"), path=f"{prefix}/dsd/v1/schedule")
    assert answer.status_code == 200, answer.text
    assert answer.json()["schedule"]["revision"]["number"] == guarded.number
    assert guarded.put(path=f"{prefix}/dsd/v1/schedule").status_code == 401


def test_api_key_and_our_token_are_two_things(guarded: Guarded) -> None:
    """Who may ask the model may not change the schedule, and the operator may not ask the model."""
    assert guarded.status_of(f"Bearer {API_KEY}") == 401
    models = guarded.server.client.get("/v1/models", headers={"Authorization": f"Bearer {guarded.token()}"})
    assert models.status_code == 401
    models = guarded.server.client.get("/v1/models", headers={"Authorization": f"Bearer {API_KEY}"})
    assert models.status_code == 200


@WITH_TLS
@pytest.mark.parametrize("issued_by", [None, "stranger"])
def test_client_certificate_is_required(guarded: Guarded, issued_by: str | None, tmp_path: Path) -> None:
    """None, or one of another authority: not even the status is shown."""
    stranger = Authority(tmp_path, issued_by).issue("client") if issued_by else None
    url = f"https://127.0.0.1:{guarded.server.port}/dsd/v1/status"
    with (
        httpx.Client(verify=context(guarded.authority, stranger), trust_env=False, timeout=120) as client,
        pytest.raises(httpx.TransportError),
    ):
        client.get(url)


@WITH_TLS
def test_plain_http_is_not_answered(guarded: Guarded) -> None:
    with pytest.raises(httpx.TransportError):
        httpx.get(f"http://127.0.0.1:{guarded.server.port}/dsd/v1/status", trust_env=False, timeout=120)


def test_scheme_in_lower_case(guarded: Guarded) -> None:
    assert guarded.status_of(f"bearer {guarded.token()}") == 200


def test_headers_that_are_refused(guarded: Guarded) -> None:
    """They come through uvicorn's own parser, which joins nothing and decodes nothing."""
    good = f"Bearer {guarded.token()}"
    assert guarded.status_of(good, good) == 401
    assert guarded.status_of("Basic abc", good) == 401
    assert guarded.status_of(good.replace("Bearer", "Basic")) == 401
    assert guarded.status_of("Bearer sésame") == 401
    assert guarded.status_of(b"Bearer \xff\xfe") == 401
    assert guarded.status_of(good + "é") == 401
    assert guarded.status_of(good.replace("Bearer ", "Bearer\t")) == 401
    assert guarded.status_of(good) == 200


@pytest.mark.parametrize("headers", [1, 1000])
@pytest.mark.parametrize("size", [20_000, 2_000_000])
def test_oversized_headers(guarded: Guarded, size: int, headers: int) -> None:
    """vLLM's limits for headers hold only for its other HTTP parser, so they arrive here. 401, or the server closes
    the connection; afterwards it serves on."""
    many = [(f"x-{i}", "a" * (size // headers)) for i in range(headers - 1)]
    try:
        answer = guarded.put(*many, ("authorization", "Bearer " + "a" * size))
        assert answer.status_code in (400, 401, 431)
    except httpx.TransportError:
        pass
    assert guarded.status_of(f"Bearer {guarded.token()}") == 200


def test_request_that_never_ends(guarded: Guarded) -> None:
    """A connection that is opened and says nothing holds up nobody."""
    with socket.create_connection(("127.0.0.1", guarded.server.port), timeout=60) as silent:
        silent.sendall(b"PUT /dsd/v1/schedule HTTP/1.1\r\n")
        assert guarded.status_of(f"Bearer {guarded.token()}") == 200


def test_issuer_and_keys_change_without_a_restart(guarded: Guarded) -> None:
    old = f"Bearer {guarded.token()}"
    assert guarded.status_of(old) == 200
    guarded.trust(tokens.new_ec(), "https://issuer-2.example")
    assert guarded.status_of(old) == 401
    assert guarded.status_of(f"Bearer {guarded.token(iss=tokens.ISSUER)}") == 401, "new key, old issuer"
    assert guarded.status_of(f"Bearer {guarded.token()}") == 200


def test_refusals_do_not_change_the_schedule(guarded: Guarded) -> None:
    assert guarded.status_of(f"Bearer {guarded.token()}") == 200
    before = guarded.server.status()["schedule"]
    assert guarded.status_of(f"Bearer {guarded.token(aud=['dsd-operator.io/team-a/other'])}") == 403
    assert guarded.status_of(f"Bearer {guarded.token(sub='system:serviceaccount:team-a:default')}") == 403
    assert guarded.status_of(f"Bearer {guarded.token(exp=1)}") == 401
    assert guarded.server.status()["schedule"] == before


def test_log_has_no_token(guarded: Guarded) -> None:
    """Not of those accepted, not of those refused."""
    assert guarded.status_of("Bearer " + guarded.token(exp=1)) == 401
    assert guarded.status_of("Bearer " + guarded.token()) == 200
    log = guarded.server.log.read_text(errors="replace")
    assert "PUT /" in log, "the requests themselves are logged"
    assert len(guarded.sent) >= 2
    for token in guarded.sent:
        assert token not in log
        assert token.rsplit(".", 1)[1] not in log
