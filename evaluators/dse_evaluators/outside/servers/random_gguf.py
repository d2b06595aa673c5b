"""GGUF files of random weights: models of a stated shape, of which only the speed is of use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dse.errors import PluginError, nearest

if TYPE_CHECKING:
    import gguf

SHAPE = {"layers": 4, "width": 256, "heads": 4, "kv_heads": 2, "ffn": 768, "context": 8192}
"""Shape of the model that is drawn by default."""

WEIGHT_FORMATS = ("f16", "q8_0", "q5_0", "q4_0")
"""Formats of the weights that can be drawn, in the names of GGUF."""

_BLOCK = 32  # weights that share a scale
_DEVIATION = 0.02
_BYTES = [f"<0x{number:02X}>".encode() for number in range(256)]
_TOKENS = [b"<unk>", b"<s>", b"</s>", *_BYTES]


def shape_of(given: Any) -> dict[str, int]:
    """Return the model shape of an option, completed by the defaults.

    Raises:
        PluginError: a name is unknown, or a number is invalid.
    """
    for name, number in given.items():
        if name not in SHAPE:
            hint = nearest(str(name), SHAPE)
            raise PluginError(f"a model's shape has no {name!r}", hint=hint, part=["model"])
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            problem = f"model: {name} is {number!r}"
            raise PluginError(problem, hint="it is an integer of at least 1", part=["model"])
    shape = {**SHAPE, **given}
    if shape["width"] % shape["heads"] or shape["heads"] % shape["kv_heads"]:
        hint = "width is a multiple of heads, and heads of kv_heads"
        raise PluginError("the model's heads do not divide it", hint=hint, part=["model"])
    return shape


def write_random_model(
    path: Path, shape: dict[str, int], seed: int = 0, weight_format: str = "f16"
) -> None:
    """Write a Llama model of random weights, with a vocabulary of bytes.

    All layers have the weights of the first one, which saves the time of drawing more.

    Args:
        path: the file to write.
        shape: numbers of layers, width, heads, key-value heads, feed-forward width and context.
        seed: seed of the weights.
        weight_format: one of ``WEIGHT_FORMATS``; scales of blocks need a width and a feed-forward
            width that are multiples of 32.

    Raises:
        PluginError: the package ``gguf`` is not installed.

    Source:
        GGUF specification (ggml/docs/gguf.md): keys of the architecture ``llama``.
    """
    try:
        import gguf
    except ImportError as error:
        raise PluginError(
            "a random model needs the package gguf", hint="pip install 'dse-engine[llama]'"
        ) from error
    writer = gguf.GGUFWriter(path, "llama")
    _write_header(writer, shape)
    _add_tensors(writer, shape, np.random.default_rng(seed), weight_format)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _write_header(writer: gguf.GGUFWriter, shape: dict[str, int]) -> None:
    writer.add_context_length(shape["context"])
    writer.add_embedding_length(shape["width"])
    writer.add_block_count(shape["layers"])
    writer.add_feed_forward_length(shape["ffn"])
    writer.add_head_count(shape["heads"])
    writer.add_head_count_kv(shape["kv_heads"])
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(shape["width"] // shape["heads"])
    writer.add_vocab_size(len(_TOKENS))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(_TOKENS)
    writer.add_token_scores([0.0] * len(_TOKENS))
    writer.add_token_types([2, 3, 3] + [6] * len(_BYTES))  # unknown, control and byte tokens
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)


def _add_tensors(
    writer: gguf.GGUFWriter,
    shape: dict[str, int],
    random: np.random.Generator,
    weight_format: str,
) -> None:
    width, ffn = shape["width"], shape["ffn"]
    keys = width // shape["heads"] * shape["kv_heads"]
    matrices = {
        "attn_q": (width, width),
        "attn_k": (keys, width),
        "attn_v": (keys, width),
        "attn_output": (width, width),
        "ffn_gate": (ffn, width),
        "ffn_up": (ffn, width),
        "ffn_down": (width, ffn),
    }

    def draw(rows: int, cols: int) -> NDArray[Any]:
        return random.standard_normal((rows, cols), dtype=np.float32) * np.float32(_DEVIATION)

    for name in ("token_embd", "output"):
        _add_matrix(writer, name, draw(len(_TOKENS), width), weight_format)
    writer.add_tensor("output_norm.weight", np.ones(width, np.float32))
    drawn = {name: draw(rows, cols) for name, (rows, cols) in matrices.items()}
    for layer in range(shape["layers"]):
        for norm in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{norm}.weight", np.ones(width, np.float32))
        for name, weights in drawn.items():
            _add_matrix(writer, f"blk.{layer}.{name}", weights, weight_format)


def _add_matrix(
    writer: gguf.GGUFWriter, name: str, weights: NDArray[np.float32], weight_format: str
) -> None:
    import gguf

    if weight_format == "f16":
        writer.add_tensor(f"{name}.weight", weights.astype(np.float16))
        return
    kind = gguf.GGMLQuantizationType[weight_format.upper()]
    codes = gguf.quants.quantize(weights, kind)
    writer.add_tensor(f"{name}.weight", codes, raw_dtype=kind)
