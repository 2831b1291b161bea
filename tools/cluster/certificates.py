"""One certificate authority per cluster and what it signs, made with openssl (elliptic curve keys, ten years)."""

import os
from collections.abc import Sequence
from pathlib import Path

from tools.cluster import shell

_DAYS = "3650"
_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
# An own, minimal configuration: the distribution's adds CA extensions to every certificate.
_CONFIGURATION = "[req]\ndistinguished_name = name\nprompt = no\n[name]\n"


class Authority:
    """A directory with ``ca.crt``, ``ca.key`` and a pair of files per name it signed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def certificate(self, name: str) -> Path:
        """The certificate of ``name``."""
        return self._directory / f"{name}.crt"

    def key(self, name: str) -> Path:
        """The private key of ``name``."""
        return self._directory / f"{name}.key"

    def create(self) -> None:
        """Make the authority itself."""
        (self._directory / "openssl.cnf").write_text(_CONFIGURATION)
        usage = "keyUsage=critical,digitalSignature,keyCertSign,cRLSign"
        self._request("ca", "/CN=dsd-operator-local", ["basicConstraints=critical,CA:true", usage], signer=None)

    def issue(self, name: str, user: str, group: str = "", addresses: Sequence[str] = ()) -> None:
        """Sign a certificate for client use, and for serving if it has ``addresses`` (``DNS:x`` or ``IP:x``).

        ``user`` and ``group`` are what Kubernetes reads from it: the common name and the organization.
        """
        extensions = ["basicConstraints=critical,CA:false", "keyUsage=critical,digitalSignature"]
        extensions.append(f"extendedKeyUsage=clientAuth{',serverAuth' if addresses else ''}")
        if addresses:
            extensions.append(f"subjectAltName={','.join(addresses)}")
        self._request(name, f"{f'/O={group}' if group else ''}/CN={user}", extensions, signer="ca")

    def create_key_pair(self, name: str) -> None:
        """A bare key pair (``name.key``, ``name.pub``), for service-account tokens."""
        shell.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", self.key(name)])
        shell.run(["openssl", "ec", "-in", self.key(name), "-pubout", "-out", self.public_key(name)])
        os.chmod(self.key(name), 0o600)

    def public_key(self, name: str) -> Path:
        """The public half of :meth:`create_key_pair`."""
        return self._directory / f"{name}.pub"

    def _request(self, name: str, subject: str, extensions: Sequence[str], signer: str | None) -> None:
        command: list[str | Path] = ["openssl", "req", "-x509", "-config", self._directory / "openssl.cnf", *_CURVE]
        command += ["-days", _DAYS, "-subj", subject, "-keyout", self.key(name), "-out", self.certificate(name)]
        for extension in extensions:
            command += ["-addext", extension]
        if signer:
            command += ["-CA", self.certificate(signer), "-CAkey", self.key(signer)]
        shell.run(command)
        os.chmod(self.key(name), 0o600)
