"""A one-file container image from a static program, without any image builder."""

import hashlib
import io
import json
import tarfile
from pathlib import Path

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"


def write(
    archive: Path, program: Path, reference: str, architecture: str = "amd64", stop_signal: str = "SIGTERM"
) -> None:
    """Write an OCI archive of an image called ``reference`` that holds and starts ``/NAME`` of the program.

    ``stop_signal`` asks it to end.
    """
    layer = _tar({program.name: program.read_bytes()}, mode=0o755)
    config = json.dumps(
        {
            "architecture": architecture,
            "os": "linux",
            "config": {"Entrypoint": [f"/{program.name}"], "User": "65535:65535", "StopSignal": stop_signal},
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        }
    ).encode()
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(config, _CONFIG),
            "layers": [_descriptor(layer, _LAYER)],
        }
    ).encode()
    entry = _descriptor(manifest, _MANIFEST) | {"annotations": {"io.containerd.image.name": reference}}
    files = {f"blobs/sha256/{_digest(blob).partition(':')[2]}": blob for blob in (layer, config, manifest)}
    files["oci-layout"] = json.dumps({"imageLayoutVersion": "1.0.0"}).encode()
    files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode()
    archive.write_bytes(_tar(files, mode=0o644))


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _descriptor(blob: bytes, media_type: str) -> dict[str, object]:
    return {"mediaType": media_type, "digest": _digest(blob), "size": len(blob)}


def _tar(files: dict[str, bytes], mode: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), mode
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()
