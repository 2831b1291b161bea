"""Runs inside the image being built: make the CUDA build of PyTorch small enough for a machine without a GPU.

The package index has PyTorch for Linux only with CUDA: 2.7 GB of NVIDIA libraries that a CPU never calls, but that the
dynamic linker must find. Large ones that PyTorch links are replaced by libraries that define the same symbols and trap
when called; those that it would only load on a GPU are removed. The small ones that it calls to learn that there is no
GPU stay. Usage: shrink_torch.py SITE_PACKAGES
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# Called at import, or smaller than the trouble.
KEPT = ("libcudart.so", "libcupti.so", "libcudnn.so", "libcufile.so")
# Reached only through a GPU: solvers loaded on demand, and Python bindings to the driver.
UNUSED = ("torch/lib/libtorch_cuda_linalg.so", "torch/test", "cuda")


def needed(library: Path) -> list[str]:
    """The shared libraries a library asks for."""
    lines = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.split("[")[1].rstrip("]") for line in lines if "(NEEDED)" in line]


def symbols(library: Path) -> dict[str, str]:
    """Exported symbols and their versions (an empty text where there is none)."""
    options = ["-D", "--with-symbol-versions", "--defined-only"]
    lines = subprocess.run(["nm", *options, library], capture_output=True, text=True, check=True).stdout.splitlines()
    found = {}
    for line in lines:
        name, _, version = line.split()[-1].replace("@@", "@").partition("@")
        if line.split()[-2] in "TtWwiVvDBR" and name != version:
            found[name] = version
    return found


def write_stub(library: Path) -> None:
    """Replace a library by one that defines the same symbols, each of which traps."""
    exported = symbols(library)
    with tempfile.TemporaryDirectory() as directory:
        source, script, built = (Path(directory) / name for name in ("stub.S", "stub.map", library.name))
        labels = "".join(f".globl {name}\n.type {name},@function\n{name}:\n" for name in exported)
        source.write_text(f'.text\n{labels}ud2\n.section .note.GNU-stack,"",@progbits\n')
        versions = sorted(set(exported.values()) - {""})
        script.write_text("".join(_node(version, exported) for version in versions))
        flags = ["-shared", "-nostdlib", f"-Wl,-soname,{library.name}"]
        if versions:
            flags.append(f"-Wl,--version-script={script}")
        subprocess.run(["gcc", *flags, "-o", built, source], check=True)
        library.unlink()
        shutil.copy(built, library)


def _node(version: str, exported: dict[str, str]) -> str:
    names = "".join(f"{name};" for name, of in exported.items() if of == version)
    return f"{version} {{ global: {names} }};\n"


def linked(site: Path) -> set[str]:
    """Names of the libraries that PyTorch and torchvision link, directly or through kept ones."""
    names: set[str] = set()
    todo = [*site.glob("torch/lib/*.so*"), *site.glob("torchvision/*.so")]
    while todo:
        for name in needed(todo.pop()):
            if name not in names:
                names.add(name)
                if name.startswith(KEPT):
                    todo += site.glob(f"nvidia/*/lib/{name}")
    return names


def shrink(site: Path) -> None:
    """Do it to one site-packages directory."""
    for name in UNUSED:
        path = site / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    wanted = linked(site)
    for file in [path for path in site.glob("nvidia/**/*") if path.is_file() or path.is_symlink()]:
        if file.name in wanted and file.parent.name == "lib":
            if not file.name.startswith(KEPT):
                write_stub(file)
        elif file.suffix != ".py":
            file.unlink()


if __name__ == "__main__":
    shrink(Path(sys.argv[1]))
