"""Compresses a decoder of a billion random weights to int4 in shards; prints memory and seconds.

    python benchmarks/large_model.py [--layers 16] [--tokens 1024] [--skip gptq] [--folder DIR]

The model has the sizes of Llama-3.2-1B in bfloat16; weights and tokens are random, so that quality
means nothing here. Each run is a process of its own, whose peak memory the system reports. Last,
GPTQ of a layer of 2,048 x 2,048 is timed against PyTorch operations written from algorithm 1 of
the paper, alternately, on one thread. Files are deleted at the end; they take 4 GB.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from dse.interop.deployment.safetensors_shards import write_shards
from dse.protocols import DeployedTensor
from dse_evaluators.compression.operators.gptq import Gptq
from dse_evaluators.compression.operators.reading import restore_tensor
from dse_evaluators.compression.streamed_layers import compress_folder
from dse_evaluators.formats.arrays import Single
from dse_evaluators.formats.names import format_of

GROUP = 128
RECIPES = {"rtn": f"format int4:group={GROUP}", "gptq": f"gptq int4:group={GROUP}"}
LENGTH = 128
"""Positions of a calibration sequence."""

CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 128256,
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
    "tie_word_embeddings": True,
    "max_position_embeddings": 131072,
}
"""Sizes of meta-llama/Llama-3.2-1B (config.json, 2024), without the scaling of long texts."""

BLOCK = {
    "self_attn.q_proj.weight": (2048, 2048),
    "self_attn.k_proj.weight": (512, 2048),
    "self_attn.v_proj.weight": (512, 2048),
    "self_attn.o_proj.weight": (2048, 2048),
    "mlp.gate_proj.weight": (8192, 2048),
    "mlp.up_proj.weight": (8192, 2048),
    "mlp.down_proj.weight": (2048, 8192),
    "input_layernorm.weight": (2048,),
    "post_attention_layernorm.weight": (2048,),
}


def draw_model(layers: int) -> Iterator[tuple[str, DeployedTensor]]:
    """Yield the tensors of a decoder with random weights, which bfloat16 holds exactly."""
    rng = np.random.default_rng(0)
    shapes = {"model.embed_tokens.weight": (128256, 2048)}
    for place in range(layers):
        shapes |= {f"model.layers.{place}.{name}": one for name, one in BLOCK.items()}
    for name, shape in {**shapes, "model.norm.weight": (2048,)}.items():
        values = rng.standard_normal(shape, dtype=np.float32)
        values *= np.float32(0.02)
        values += np.float32(len(shape) == 1)  # weights of norms are about 1
        values.view(np.uint32)[...] &= np.uint32(0xFFFF0000)
        yield name, DeployedTensor(values=values, stored="bfloat16")


def compress(source: Path, target: Path, scheme: str, tokens: int) -> None:
    """Compress a folder in this process; print seconds, peak memory and bytes as JSON."""
    drawn = np.random.default_rng(1).integers(0, CONFIG["vocab_size"], (tokens // LENGTH, LENGTH))
    start = time.perf_counter()
    found = compress_folder(source, RECIPES[scheme], drawn if scheme == "gptq" else None)
    config = json.loads((source / "config.json").read_text())
    done = write_shards(found, target, config)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "peak_bytes": peak, **done.tensor_bytes}))


def run_compression(source: Path, target: Path, scheme: str, tokens: int) -> None:
    """Compress a folder in a process of its own; print a row of the table."""
    arguments = ["--compress", scheme, "--tokens", str(tokens), str(source), str(target)]
    done = subprocess.run(
        [sys.executable, __file__, *arguments], check=True, capture_output=True, text=True
    )
    row = json.loads(done.stdout)
    size = sum(row[name] for name in ("codes", "scales", "unquantized"))
    print(
        f"{scheme:<6} {row['seconds']:>8.1f} s {row['peak_bytes'] / 1e9:>6.2f} GB peak "
        f"{row['codes'] * 2 / 1e9:>6.3f} G weights in int4 {size / 1e9:>6.2f} GB of tensors",
        flush=True,
    )


def quantize_by_paper(weight: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
    """Return weights quantized by algorithm 1 of GPTQ (Frantar et al., 2023), in float32.

    Steps are those of the paper, with blocks of 128 columns and damping by 1 %; scales are fixed
    in advance, as those of ``Gptq`` are, so that both round to the same numbers.
    """
    moments = inputs.T @ inputs / len(inputs)
    moments.diagonal().add_(0.01 * moments.diagonal().mean())
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(moments))
    upper = torch.linalg.cholesky(inverse, upper=True)
    scales = weight.reshape(len(weight), -1, GROUP).abs().amax(-1) / 7
    left, result = weight.clone(), torch.zeros_like(weight)
    for start in range(0, weight.shape[1], 128):
        part = left[:, start : start + 128]
        errors = torch.zeros_like(part)
        block = upper[start : start + 128, start : start + 128]
        for column in range(128):
            scale = scales[:, (start + column) // GROUP]
            values = part[:, column]
            rounded = (values / scale).round().clamp(-7, 7) * scale
            result[:, start + column] = rounded
            error = (values - rounded) / block[column, column]
            part[:, column:] -= error[:, None] * block[column, column:]
            errors[:, column] = error
        left[:, start + 128 :] -= errors @ upper[start : start + 128, start + 128 :]
    return result


def compare_with_paper(repeats: int) -> None:
    """Print processor seconds and output errors of GPTQ of one layer, ours and by the paper."""
    rng = np.random.default_rng(2)
    weight = rng.standard_normal((2048, 2048), dtype=np.float32)
    mixing = rng.standard_normal((2048, 2048), dtype=np.float32) / 45
    inputs = rng.standard_normal((4096, 2048), dtype=np.float32) @ mixing
    torch.set_num_threads(1)
    ours, paper = [], []
    with threadpool_limits(limits=1):
        for _ in range(repeats):
            start = time.process_time()  # another program may have the processor in between
            record = Gptq(f"int4:group={GROUP}")(weight, inputs)
            middle = time.process_time()
            plain = quantize_by_paper(torch.from_numpy(weight), torch.from_numpy(inputs))
            ours.append(middle - start)
            paper.append(time.process_time() - middle)
    ratios = np.array(ours) / paper
    print(
        f"GPTQ of 2048 x 2048, one thread, median of {repeats}, processor time: "
        f"ours {np.median(ours):.2f} s, "
        f"PyTorch by the paper {np.median(paper):.2f} s, ratio {np.median(ratios):.2f} "
        f"({ratios.min():.2f} to {ratios.max():.2f})"
    )
    rounded = format_of(f"int4:group={GROUP}").quantize(weight, 1)
    for name, values in (
        ("ours", restore_tensor(record)),
        ("paper", plain.numpy()),
        ("rounding to nearest", rounded),
    ):
        print(f"relative output error, {name}: {_output_error(weight, values, inputs):.5f}")


def _output_error(weight: Single, values: Single, inputs: Single) -> float:
    lost = inputs @ (values - weight).T
    return float((lost**2).mean() / ((inputs @ weight.T) ** 2).mean())


def main() -> None:
    """Make the model, compress it by each recipe, and compare GPTQ with the paper's steps."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--skip", nargs="*", choices=[*RECIPES, "paper"], default=[])
    parser.add_argument("--folder", help="where temporary files are made")
    parser.add_argument("--compress", choices=RECIPES, help=argparse.SUPPRESS)
    parser.add_argument("paths", nargs="*", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.compress:
        compress(*given.paths, given.compress, given.tokens)
        return
    if "paper" not in given.skip:
        compare_with_paper(given.repeats)
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        config = {**CONFIG, "num_hidden_layers": given.layers}
        if set(RECIPES) - set(given.skip):
            write_shards(draw_model(given.layers), folder / "model", config)
        for scheme in RECIPES:
            if scheme not in given.skip:
                run_compression(folder / "model", folder / scheme, scheme, given.tokens)


if __name__ == "__main__":
    main()
