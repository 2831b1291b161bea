"""Make tiny random models for tests: a Llama target, a draft model, an EAGLE head and an EAGLE-3 head.

Everything the tests need to run every model-based drafter without a download. The weights are random but related, so
that drafts are accepted often and not always: the target's first layer dominates, and the drafters are that layer.
Float32, because greedy outputs are compared token for token. The same seed gives the same bytes.

    python tools/models/tiny.py OUTPUT_DIR      writes OUTPUT_DIR/{target,draft,eagle,eagle3}
"""

import argparse
import hashlib
import json
import math
import shutil
import sys
from pathlib import Path
from typing import Any, Final

VOCAB: Final = 512
HIDDEN: Final = 64
INTERMEDIATE: Final = 128
HEADS: Final = 2
HEAD_DIM: Final = 32
"""vLLM's CPU attention has no kernel for smaller heads."""

LAYERS: Final = 8
"""EAGLE-3 reads the hidden states of the layers 2, n/2 and n-3, which must be three different ones."""

SELF_ATTENTION: Final = 2.0
"""Factor on queries and keys of the EAGLE-3 head: equal tokens attract each other, so a token sees itself."""

MAX_POSITIONS: Final = 2048
LATER_LAYERS_SCALE: Final = 0.1
"""How much the layers after the first add. Smaller: drafts are accepted more often."""

SPECIAL_TOKENS: Final = ("<|pad|>", "<|bos|>", "<|eos|>", "<|user|>", "<|assistant|>", "<|system|>", "<|end|>")
CHAT_TEMPLATE: Final = (
    "{{ '<|bos|>' }}{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)

Tensors = dict[str, Any]


def base_config(layers: int) -> dict[str, Any]:
    """The `config.json` of a Llama model with `layers` layers."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": VOCAB,
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "num_hidden_layers": layers,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "head_dim": HEAD_DIM,
        "hidden_act": "silu",
        "max_position_embeddings": MAX_POSITIONS,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }


def layer_tensors(generator: Any, prefix: str, scale: float) -> Tensors:
    """One decoder layer; `scale` multiplies what it adds to the residual stream."""
    import torch

    def matrix(rows: int, columns: int, factor: float = 1.0) -> Any:
        return torch.randn(rows, columns, generator=generator) * (factor / math.sqrt(columns))

    width = HEADS * HEAD_DIM
    return {
        f"{prefix}.self_attn.q_proj.weight": matrix(width, HIDDEN),
        f"{prefix}.self_attn.k_proj.weight": matrix(width, HIDDEN),
        f"{prefix}.self_attn.v_proj.weight": matrix(width, HIDDEN),
        f"{prefix}.self_attn.o_proj.weight": matrix(HIDDEN, width, scale),
        f"{prefix}.mlp.gate_proj.weight": matrix(INTERMEDIATE, HIDDEN),
        f"{prefix}.mlp.up_proj.weight": matrix(INTERMEDIATE, HIDDEN),
        f"{prefix}.mlp.down_proj.weight": matrix(HIDDEN, INTERMEDIATE, scale),
        f"{prefix}.input_layernorm.weight": torch.ones(HIDDEN),
        f"{prefix}.post_attention_layernorm.weight": torch.ones(HIDDEN),
    }


def target_tensors(seed: int) -> Tensors:
    """The target. Embedding rows have a root mean square of 1, so that the first layer's norm changes nothing: the
    EAGLE head has no such norm and still computes the same."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    embeddings = torch.randn(VOCAB, HIDDEN, generator=generator)
    embeddings = embeddings / embeddings.pow(2).mean(dim=1, keepdim=True).sqrt()
    head = torch.randn(VOCAB, HIDDEN, generator=generator)
    tensors = {"model.embed_tokens.weight": embeddings, "lm_head.weight": head, "model.norm.weight": torch.ones(HIDDEN)}
    # The end-of-sequence token and the other special ones must never win, or completions would end at random.
    tensors["lm_head.weight"][: len(SPECIAL_TOKENS)] = 0.0
    for index in range(LAYERS):
        scale = 1.0 if index == 0 else LATER_LAYERS_SCALE
        tensors |= layer_tensors(generator, f"model.layers.{index}", scale)
    return tensors


def draft_tensors(target: Tensors) -> Tensors:
    """The draft model: embeddings, first layer and head of the target."""
    shared = ("model.embed_tokens.", "lm_head.", "model.norm.", "model.layers.0.")
    return {name: tensor.clone() for name, tensor in target.items() if name.startswith(shared)}


def eagle_tensors(target: Tensors) -> Tensors:
    """The EAGLE head: `fc` passes the embedding on and drops the hidden state, the layer is the target's first."""
    import torch

    fc = torch.cat([torch.eye(HIDDEN), torch.zeros(HIDDEN, HIDDEN)], dim=1)
    layer = {
        name.removeprefix("model."): tensor.clone()
        for name, tensor in target.items()
        if name.startswith("model.layers.0.") and "input_layernorm" not in name
    }
    return {"fc.weight": fc, "embed_tokens.weight": target["model.embed_tokens.weight"].clone()} | layer


def eagle3_tensors(target: Tensors, seed: int) -> Tensors:
    """The EAGLE-3 head. Its residual stream starts from the target's hidden states and not from the embedding, so no
    layer of the target fits; instead its attention looks at the token itself and copies the embedding into the stream.
    """
    import torch

    generator = torch.Generator().manual_seed(seed + 3)
    nothing = torch.zeros(HIDDEN, HIDDEN)
    sharp = torch.cat([torch.eye(HIDDEN) * SELF_ATTENTION, nothing], dim=1)
    tensors = {
        "midlayer.self_attn.q_proj.weight": sharp,
        "midlayer.self_attn.k_proj.weight": sharp.clone(),
        "midlayer.self_attn.v_proj.weight": torch.cat([torch.eye(HIDDEN), nothing], dim=1),
        "midlayer.self_attn.o_proj.weight": torch.eye(HIDDEN),
        "midlayer.hidden_norm.weight": torch.ones(HIDDEN),
        "midlayer.input_layernorm.weight": torch.ones(HIDDEN),
        "midlayer.post_attention_layernorm.weight": torch.ones(HIDDEN),
        "fc.weight": torch.randn(HIDDEN, 3 * HIDDEN, generator=generator) * 0.01,
        "norm.weight": torch.ones(HIDDEN),
        "lm_head.weight": target["lm_head.weight"].clone(),
    }
    for part in ("gate_proj", "up_proj", "down_proj"):
        tensors[f"midlayer.mlp.{part}.weight"] = target[f"model.layers.0.mlp.{part}.weight"].clone()
    return tensors


def eagle3_config() -> dict[str, Any]:
    """The EAGLE-3 head's `config.json`; it shares the target's vocabulary."""
    return base_config(1) | {"architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": VOCAB}


def write_tokenizer(folder: Path) -> None:
    """A byte-level BPE tokenizer that fills the vocabulary: 256 bytes, the special tokens, pairs of letters."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    letters = "etaoinsrhldcumfpgwyb"
    merges = [(a, b) for a in letters for b in letters][: VOCAB - len(alphabet) - len(SPECIAL_TOKENS)]
    words = [*SPECIAL_TOKENS, *alphabet, *(a + b for a, b in merges)]
    bpe = models.BPE(vocab={word: i for i, word in enumerate(words)}, merges=merges)
    tokenizer = Tokenizer(bpe)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL_TOKENS])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": MAX_POSITIONS,
        "pad_token": "<|pad|>",
        "bos_token": "<|bos|>",
        "eos_token": "<|eos|>",
        "chat_template": CHAT_TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=1) + "\n")


def write_model(folder: Path, config: dict[str, Any], tensors: Tensors) -> None:
    """Write `config.json` and `model.safetensors`."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    save_file({name: t.contiguous() for name, t in tensors.items()}, folder / "model.safetensors", {"format": "pt"})


def stamp(seed: int) -> str:
    """What the written models depend on: this script and the seed."""
    return hashlib.sha256(Path(__file__).read_bytes() + str(seed).encode()).hexdigest()


def make(output: Path, seed: int = 0) -> Path:
    """Write all four models to `output` unless this version of them is there already; returns `output`."""
    marker = output / "stamp"
    if marker.is_file() and marker.read_text() == stamp(seed):
        return output
    work = output.with_name(output.name + ".partial")
    shutil.rmtree(work, ignore_errors=True)
    target = target_tensors(seed)
    write_model(work / "target", base_config(LAYERS), target)
    write_model(work / "draft", base_config(1), draft_tensors(target))
    write_model(work / "eagle", base_config(1), eagle_tensors(target))
    write_model(work / "eagle3", eagle3_config(), eagle3_tensors(target, seed))
    write_tokenizer(work / "target")
    write_tokenizer(work / "draft")
    (work / "stamp").write_text(stamp(seed))
    make_readable(work)
    shutil.rmtree(output, ignore_errors=True)
    work.rename(output)
    return output


def make_readable(folder: Path) -> None:
    """World-readable: safetensors writes 0600, and a pod runs under another user."""
    folder.chmod(0o755)
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


def main(arguments: list[str] | None = None) -> int:
    """Command line entry point; returns the exit status."""
    parser = argparse.ArgumentParser(description="Make tiny random models for tests (about 3 MB in all).")
    parser.add_argument("output", type=Path, help="folder for target/, draft/, eagle/ and eagle3/; kept when current")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random weights (default: %(default)s)")
    options = parser.parse_args(arguments)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    print(make(options.output, options.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
