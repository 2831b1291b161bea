"""The installed vLLM as an oracle, without importing it (that takes seconds): single files, functions as syntax."""

import ast
import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType


@cache
def root() -> Path:
    """The directory of the installed package `vllm`."""
    spec = importlib.util.find_spec("vllm")
    assert spec is not None, "vLLM is not installed: make venv"
    assert spec.origin is not None
    return Path(spec.origin).parent


@cache
def load(path: str) -> ModuleType:
    """A module of vLLM that imports nothing of vLLM itself, by its path in the package."""
    name = "oracle_" + Path(path).stem
    spec = importlib.util.spec_from_file_location(name, root() / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def function(path: str, name: str) -> ast.FunctionDef:
    """The syntax tree of a function or method; fails when vLLM no longer has exactly one of that name."""
    tree = ast.parse((root() / path).read_text())
    (found,) = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name]
    return found
