"""Make tiny models for the speculative methods that `tiny` has none for, and for targets of other kinds.

Heads and drafters for the target of `tiny`, in a folder beside it; a target with an MTP module; a hybrid of attention
and Mamba layers; a mixture of experts. As there: random but related weights, float32, the same seed gives the same
bytes, no download.

    python -m tools.models.tiny_methods TINY_DIR OUTPUT_DIR
"""

import hashlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any, Final

from tools.models import tiny

MEDUSA_HEADS: Final = 3
MASK_TOKEN: Final = 0
"""The padding token, which no prompt holds: parallel drafters read it where a token is still to be guessed."""

AUX_LAYERS: Final = (1, 4, 6)
"""Layers of the target whose hidden states the DFlash drafter reads."""


def medusa(target: tiny.Tensors) -> tuple[dict[str, Any], tiny.Tensors]:
    """Medusa heads. The blocks add nothing, so that each head guesses what the target says of the last token."""
    import torch

    config = {
        "architectures": ["MedusaModel"],
        "model_type": "medusa",
        "hidden_size": tiny.HIDDEN,
        "vocab_size": tiny.VOCAB,
        "truncated_vocab_size": tiny.VOCAB,
        "num_heads": MEDUSA_HEADS,
        "num_hidden_layers": 1,
    }
    tensors = {}
    for head in range(MEDUSA_HEADS):
        tensors[f"blocks.{head}.layers.0.weight"] = torch.zeros(tiny.HIDDEN, tiny.HIDDEN)
        tensors[f"lm_heads.{head}.weight"] = target["lm_head.weight"].clone()
    return config, tensors


def mtp(target: tiny.Tensors, modules: int) -> tuple[dict[str, Any], tiny.Tensors]:
    """A MiMo: the target as a Qwen2 (biases of nothing), and MTP modules that are its first layer. A module's
    projection passes the embedding on and drops the hidden state."""
    config = tiny.base_config(tiny.LAYERS) | {
        "architectures": ["MiMoForCausalLM"],
        "model_type": "qwen2",
        "num_nextn_predict_layers": modules,
    }
    tensors = {name: tensor.clone() for name, tensor in target.items()}
    for index in range(modules):
        tensors |= mtp_module(target, f"model.mtp_layers.{index}")
    return config, tensors | biases([name for name in tensors if name.endswith("self_attn.q_proj.weight")])


def mtp_module(target: tiny.Tensors, prefix: str) -> tiny.Tensors:
    """One module, without the biases of its attention."""
    import torch

    first = {n.removeprefix("model.layers.0"): t for n, t in target.items() if n.startswith("model.layers.0.")}
    projection = torch.cat([torch.zeros(tiny.HIDDEN, tiny.HIDDEN), torch.eye(tiny.HIDDEN)], dim=1)
    norms = ("token_layernorm", "hidden_layernorm", "final_layernorm")
    return {
        **{prefix + name: tensor.clone() for name, tensor in first.items()},
        f"{prefix}.input_proj.weight": projection,
        **{f"{prefix}.{norm}.weight": torch.ones(tiny.HIDDEN) for norm in norms},
    }


def biases(queries: list[str]) -> tiny.Tensors:
    """Biases of nothing for each attention, named by its query projection."""
    import torch

    nothing = torch.zeros(tiny.HEADS * tiny.HEAD_DIM)
    attentions = [name.removesuffix(".q_proj.weight") for name in queries]
    return {f"{name}.{part}_proj.bias": nothing.clone() for name in attentions for part in ("q", "k", "v")}


def dflash(target: tiny.Tensors) -> tuple[dict[str, Any], tiny.Tensors]:
    """A DFlash drafter of one layer. It forgets the context (a projection of nothing) and lets each masked position
    attend to the one token that is not masked, by two components of embeddings of its own: one marks the mask, the
    other every other token. What follows is the target's first layer. Causal: vLLM's attention on a CPU is.
    """
    import torch

    config = tiny.base_config(1) | {
        "architectures": ["DFlashDraftModel"],
        "model_type": "qwen3",
        "num_target_layers": tiny.LAYERS,
        "dflash_config": {"mask_token_id": MASK_TOKEN, "target_layer_ids": list(AUX_LAYERS), "causal": True},
    }
    masked, ordinary = tiny.HIDDEN - 2, tiny.HIDDEN - 1
    embeddings = target["model.embed_tokens.weight"].clone()
    embeddings[:, masked], embeddings[:, ordinary] = 0.0, 1.0
    embeddings[MASK_TOKEN] = torch.eye(tiny.HIDDEN)[masked]
    ones, unit = torch.ones(tiny.HIDDEN), torch.eye(tiny.HIDDEN)
    tensors = {n.removeprefix("model."): t.clone() for n, t in target.items() if ".layers.0.mlp." in n}
    return config, tensors | {
        "embed_tokens.weight": embeddings,
        "fc.weight": torch.zeros(tiny.HIDDEN, len(AUX_LAYERS) * tiny.HIDDEN),
        "layers.0.self_attn.q_proj.weight": slowest(masked),
        "layers.0.self_attn.k_proj.weight": slowest(ordinary),
        "layers.0.self_attn.v_proj.weight": unit,
        "layers.0.self_attn.o_proj.weight": unit.clone(),
        "layers.0.self_attn.q_norm.weight": torch.full((tiny.HEAD_DIM,), 2.0),
        "layers.0.self_attn.k_norm.weight": torch.ones(tiny.HEAD_DIM),
        "layers.0.input_layernorm.weight": ones,
        "layers.0.post_attention_layernorm.weight": ones.clone(),
        "hidden_norm.weight": ones.clone(),
        "norm.weight": ones.clone(),
    }


def slowest(component: int) -> Any:
    """A projection that puts one component of the input where each head's rotary embedding turns least."""
    import torch

    weight = torch.zeros(tiny.HEADS * tiny.HEAD_DIM, tiny.HIDDEN)
    for head in range(tiny.HEADS):
        weight[(head + 1) * tiny.HEAD_DIM - 1, component] = 1.0
    return weight


def p_eagle(target: tiny.Tensors, seed: int) -> tuple[dict[str, Any], tiny.Tensors]:
    """The EAGLE-3 head of `tiny` as a parallel drafter: with a hidden state for the tokens that are still to come."""
    import torch

    config = tiny.eagle3_config() | {"ptd_token_id": MASK_TOKEN}
    return config, tiny.eagle3_tensors(target, seed) | {"mask_hidden": torch.zeros(1, 1, 3 * tiny.HIDDEN)}


def hybrid_config() -> Any:
    """A Granite with Mamba-2 and attention layers in turn, and no experts."""
    from transformers import GraniteMoeHybridConfig

    return GraniteMoeHybridConfig(
        vocab_size=tiny.VOCAB,
        hidden_size=tiny.HIDDEN,
        intermediate_size=tiny.INTERMEDIATE,
        shared_intermediate_size=tiny.INTERMEDIATE,
        num_local_experts=0,
        num_experts_per_tok=0,
        num_hidden_layers=4,
        num_attention_heads=tiny.HEADS,
        num_key_value_heads=tiny.HEADS,
        layer_types=["mamba", "attention", "mamba", "attention"],
        mamba_n_heads=4,
        mamba_d_head=32,
        mamba_d_state=16,
        mamba_n_groups=1,
        mamba_d_conv=4,
        mamba_expand=2,
        mamba_chunk_size=64,
        max_position_embeddings=tiny.MAX_POSITIONS,
        tie_word_embeddings=False,
        dtype="float32",
    )


def experts_config() -> Any:
    """A Mixtral with four experts."""
    from transformers import MixtralConfig

    return MixtralConfig(
        vocab_size=tiny.VOCAB,
        hidden_size=tiny.HIDDEN,
        intermediate_size=tiny.INTERMEDIATE,
        num_hidden_layers=2,
        num_attention_heads=tiny.HEADS,
        num_key_value_heads=tiny.HEADS,
        num_local_experts=4,
        num_experts_per_tok=2,
        max_position_embeddings=tiny.MAX_POSITIONS,
        tie_word_embeddings=False,
        dtype="float32",
    )


def write_random(folder: Path, config: Any, seed: int) -> None:
    """A target of transformers' own making, with a tokenizer."""
    import torch
    from transformers import AutoModelForCausalLM

    torch.manual_seed(seed)
    AutoModelForCausalLM.from_config(config).to(torch.float32).save_pretrained(folder)
    tiny.write_tokenizer(folder)


def stamp(seed: int) -> str:
    """What the written models depend on: this script, that of `tiny`, and the seed."""
    return hashlib.sha256(Path(__file__).read_bytes() + tiny.stamp(seed).encode()).hexdigest()


def make(base: Path, output: Path, seed: int = 0) -> Path:
    """Write all of them to `output` unless this version is there already; `base` holds those of `tiny.make`."""
    marker = output / "stamp"
    if marker.is_file() and marker.read_text() == stamp(seed):
        return output
    work = output.with_name(output.name + ".partial")
    shutil.rmtree(work, ignore_errors=True)
    target = tiny.target_tensors(seed)
    tiny.write_model(work / "medusa", *medusa(target))
    tiny.write_model(work / "mtp", *mtp(target, 1))
    tiny.write_model(work / "mtp-modules", *mtp(target, 2))
    tiny.write_model(work / "dflash", *dflash(target))
    tiny.write_model(work / "p-eagle3", *p_eagle(target, seed))
    tiny.write_tokenizer(work / "mtp")
    tiny.write_tokenizer(work / "mtp-modules")
    write_random(work / "hybrid", hybrid_config(), seed)
    write_random(work / "experts", experts_config(), seed)
    write_parallel(base / "draft", work / "parallel")
    (work / "stamp").write_text(stamp(seed))
    tiny.make_readable(work)
    shutil.rmtree(output, ignore_errors=True)
    work.rename(output)
    return output


def write_parallel(draft: Path, folder: Path) -> None:
    """The draft model as PARD has it: the same, but for the token that stands for those to come."""
    shutil.copytree(draft, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"pard_token": MASK_TOKEN}, indent=1) + "\n")


if __name__ == "__main__":
    print(make(Path(sys.argv[1]), Path(sys.argv[2])))
