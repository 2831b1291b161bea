"""A LoRA adapter for the tiny target: random, and strong enough to change what it says."""

import json
from pathlib import Path
from typing import Final

from tools.models.tiny import HIDDEN, LAYERS

RANK: Final = 8
"""The smallest that vLLM takes."""


def write(folder: Path, seed: int = 1) -> Path:
    """Write the adapter to `folder`, in PEFT's form; returns `folder`."""
    import torch
    from safetensors.torch import save_file

    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for layer in range(LAYERS):
        for module in ("q_proj", "o_proj"):
            name = f"base_model.model.model.layers.{layer}.self_attn.{module}"
            tensors[f"{name}.lora_A.weight"] = torch.randn(RANK, HIDDEN, generator=generator) / HIDDEN**0.5
            tensors[f"{name}.lora_B.weight"] = torch.randn(HIDDEN, RANK, generator=generator) / RANK**0.5
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "adapter_model.safetensors", {"format": "pt"})
    settings = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": RANK, "lora_alpha": RANK, "bias": "none"}
    (folder / "adapter_config.json").write_text(json.dumps(settings | {"target_modules": ["q_proj", "o_proj"]}))
    return folder
