"""A pod's port on this machine's loopback, by `kubectl port-forward`: where the API server's proxy is too slow."""

import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kubectl_dsd.cluster import ENGINE_PORT, Cluster
from kubectl_dsd.errors import Failure

_FORWARDING: Final = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+)")


@contextmanager
def port_forward(cluster: Cluster, namespace: str, pod: str, port: int = ENGINE_PORT) -> Iterator[str]:
    """The address, such as http://127.0.0.1:40123, while the block runs; raises Failure with kubectl's words."""
    program = shutil.which("kubectl")
    if program is None:
        raise Failure("kubectl is not on the PATH", "It is needed to forward a port to the pod.")
    command = [program, *cluster.login.flags, "port-forward", "--address=127.0.0.1", "-n", namespace]
    process = subprocess.Popen(
        [*command, f"pod/{pod}", f":{port}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    reader = threading.Thread(target=_drain, args=(process,), daemon=True)
    try:
        port = _local_port(process, pod)
        reader.start()
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()
        if reader.ident is not None:
            reader.join()
        if process.stdout is not None:
            process.stdout.close()


def _local_port(process: "subprocess.Popen[str]", pod: str) -> int:
    """The port that kubectl chose: the first line that it prints, or its error."""
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        if found := _FORWARDING.search(line):
            return int(found[1])
        said.append(line.strip())
    raise Failure(f"no port can be forwarded to pod {pod}: {' '.join(said) or 'kubectl ended without a word'}")


def _drain(process: "subprocess.Popen[str]") -> None:
    """Read what kubectl says of each connection: with a full pipe it would stop serving."""
    assert process.stdout is not None
    for _ in process.stdout:
        pass
