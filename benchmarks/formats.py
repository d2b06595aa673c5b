"""Numbers a second to and from number formats, beside other libraries, and a whole model's time.

Run: python benchmarks/formats.py [--csv FILE] [--numbers N]

One thread, CPU time of this process, the best of some runs; what is timed goes from float32 to the
format and back. A peer that is not installed is named as absent. microsoft/microxcaling and the
authors' code of AdaptivFloat are not on PyPI: put their checkouts on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import csv
import functools
import importlib
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import ml_dtypes
import numpy as np
import torch

from dse_evaluators.formats.names import format_of

Work = Callable[[np.ndarray], object]

RUNS = 5
SLOW_S = 1.0  # a run that takes longer is not repeated
MODEL = (22_713_216 // 384, 384)  # the weights of MiniLM-L6, as rows
COLUMNS = ("kind", "who", "what", "numbers", "cpu_s", "million_numbers_per_s")


@dataclass(frozen=True)
class Peer:
    """One library's way; ``share`` of the numbers is enough where it is slow."""

    kind: str
    who: str
    what: str
    made: Callable[[], Work]
    share: float = 1.0


def _ours(kind: str, text: str) -> Peer:
    return Peer(kind, "dse", text, lambda: functools.partial(_quantised, text))


def _quantised(text: str, values: np.ndarray) -> np.ndarray:
    return format_of(text).quantize(values)


def _torch_cast(name: str) -> Callable[[], Work]:
    return lambda: lambda x: torch.from_numpy(x).to(getattr(torch, name)).to(torch.float32)


def _ml_dtypes() -> Work:
    return lambda x: x.astype(ml_dtypes.float8_e4m3fn).astype(np.float32)


def _gfloat() -> Work:
    gfloat = importlib.import_module("gfloat")
    formats = importlib.import_module("gfloat.formats")
    return lambda x: gfloat.round_ndarray(formats.format_info_ocp_e4m3, x, sat=True)


def _microxcaling(bits: str, *, block: bool) -> Work:
    quantize = importlib.import_module("mx.mx_ops" if block else "mx.elemwise_ops")
    formats = importlib.import_module("mx.formats")
    if block:
        specs = importlib.import_module("mx.specs").finalize_mx_specs(
            {"w_elem_format": bits, "a_elem_format": bits, "block_size": 32, "scale_bits": 8}
        )
        return lambda x: quantize.quantize_mx_op(
            torch.from_numpy(x), specs, elem_format=bits, axes=[-1], round="even"
        )
    exponent, mantissa, _, top, _ = formats._get_format_params(bits)  # noqa: SLF001
    return lambda x: quantize._quantize_elemwise_core(  # noqa: SLF001
        torch.from_numpy(x), mantissa, exponent, top, round="even", saturate_normals=True
    )


def _torchao(name: str) -> Work:
    tensor = importlib.import_module("torchao.prototype.mx_formats.mx_tensor").MXTensor
    dtype = getattr(torch, name)
    return lambda x: tensor.to_mx(torch.from_numpy(x), dtype, 32).dequantize(torch.float32)


def _torchao_nvfp4() -> Work:
    module = importlib.import_module("torchao.prototype.mx_formats.nvfp4_tensor")

    def work(x: np.ndarray) -> object:
        values = torch.from_numpy(x)
        scale = module.per_tensor_amax_to_scale(values.abs().max())
        made = module.NVFP4Tensor.to_nvfp4(values, per_tensor_scale=scale)
        return made.dequantize(torch.float32)

    return work


def _bitsandbytes() -> Work:
    module = importlib.import_module("bitsandbytes.functional")
    return lambda x: module.dequantize_4bit(
        *module.quantize_4bit(torch.from_numpy(x), blocksize=64, quant_type="nf4")
    )


def _softposit() -> Work:
    posit8 = importlib.import_module("softposit").posit8
    return lambda x: np.array([float(posit8(float(v))) for v in x.ravel()], dtype=np.float32)


def _qtorch_plus() -> Work:
    module = importlib.import_module("qtorch_plus.quant")
    return lambda x: module.posit_quantize(torch.from_numpy(x), nsize=8, es=1)


def _authors_adaptivfloat() -> Work:
    function = importlib.import_module("adaptivfloat").quantize_adaptivfloat
    return lambda x: function(torch.from_numpy(x).clone(), 8, 3)


def _fake_quantize() -> Work:
    return lambda x: torch.fake_quantize_per_tensor_affine(
        torch.from_numpy(x), float(np.abs(x).max()) / 127, 0, -127, 127
    )


PEERS = (
    _ours("minifloat", "fp:e4m3"),
    _ours("minifloat", "fp:e5m2"),
    _ours("minifloat", "bf16"),
    Peer("minifloat", "torch", "float8_e4m3fn", _torch_cast("float8_e4m3fn")),
    Peer("minifloat", "torch", "float8_e5m2", _torch_cast("float8_e5m2")),
    Peer("minifloat", "ml_dtypes", "float8_e4m3fn", _ml_dtypes),
    Peer("minifloat", "gfloat", "ocp_e4m3", _gfloat),
    Peer("minifloat", "microxcaling", "fp8_e4m3", lambda: _microxcaling("fp8_e4m3", block=False)),
    _ours("block", "mx:e2m1"),
    _ours("block", "mx:e4m3"),
    _ours("block", "nvfp4"),
    Peer("block", "torchao", "MXFP4", lambda: _torchao("float4_e2m1fn_x2")),
    Peer("block", "torchao", "MXFP8", lambda: _torchao("float8_e4m3fn")),
    Peer("block", "torchao", "NVFP4", _torchao_nvfp4),
    Peer("block", "microxcaling", "MXFP4", lambda: _microxcaling("fp4_e2m1", block=True)),
    _ours("posit", "posit:8,1"),
    _ours("posit", "posit:16,1"),
    Peer("posit", "qtorch_plus", "posit 8,1", _qtorch_plus),
    Peer("posit", "softposit", "posit8", _softposit, 0.002),
    _ours("adaptivfloat", "adaptivfloat:8,3"),
    _ours("adaptivfloat", "adaptivfloat:8,3,variant=reference"),
    Peer("adaptivfloat", "its authors", "8,3", _authors_adaptivfloat),
    _ours("integer", "int8"),
    Peer("integer", "torch", "fake_quantize int8", _fake_quantize),
    _ours("table", "nf4"),
    Peer("table", "bitsandbytes", "nf4", _bitsandbytes),
)

MODEL_FORMATS = (
    *("fp:e4m3", "fp:e3m4,overflow=ieee", "bf16", "fp:e2m1,channel", "int8", "int8:channel"),
    *("int4:group=32", "int4:group=32,asym", "int4:group=32,mse", "int4:group=32,asym,mse"),
    *("int8:percentile=99.9", "int8:channel,percentile=99.9", "mx:e2m1", "mx:e4m3", "mx:int8"),
    *("mx:e2m1,scale=rceil", "nvfp4", "bfp:m4,b16", "posit:8,1", "posit:8,1,rms", "posit:16,1"),
    *("adaptivfloat:8,3", "adaptivfloat:4,2", "nxfp:4", "nxfp:5", "nf4", "nf4:double"),
    *("log:4", "log:4,nearest=value,channel", "ternary", "binary", "fixed:8.7"),
    *("kmeans:4", "kmeans:8"),
)


def main() -> None:
    """Time all and print two tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=Path, help="where to write the same rows")
    parser.add_argument("--numbers", type=int, default=10_000_000)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    rows = [*_peers(chosen.numbers), *_model()]
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    if chosen.csv is not None:
        with chosen.csv.open("w", newline="") as file:
            csv.writer(file).writerows([COLUMNS, *rows])


def _peers(numbers: int) -> Iterator[tuple[str, ...]]:
    values = np.random.default_rng(0).normal(0, 0.05, numbers // 384 * 384).astype(np.float32)
    for peer in PEERS:
        part = values[: max(math.ceil(len(values) * peer.share) // 384, 1) * 384].reshape(-1, 384)
        try:
            work = peer.made()
            spent_s = _spent_s(work, part)
        except (ImportError, OSError, RuntimeError) as error:
            print(f"{peer.who} is absent: {error}".splitlines()[0], file=sys.stderr)
            continue
        yield _row(peer.kind, peer.who, peer.what, part.size, spent_s)


def _model() -> Iterator[tuple[str, ...]]:
    values = np.random.default_rng(1).normal(0, 0.05, MODEL).astype(np.float32)
    for text in MODEL_FORMATS:
        spent_s = _spent_s(functools.partial(_quantised, text), values)
        yield _row("22.7 M weights", "dse", text, values.size, spent_s)


def _spent_s(work: Work, values: np.ndarray) -> float:
    """The least CPU time of some runs, after a small one that fills what is cached."""
    work(values[:64])
    best = math.inf
    for _ in range(RUNS):
        started = time.process_time()
        work(values)
        spent_s = time.process_time() - started
        best = min(best, spent_s)
        if spent_s > SLOW_S:
            break
    return best


def _row(kind: str, who: str, what: str, numbers: int, spent_s: float) -> tuple[str, ...]:
    speed = numbers / spent_s / 1e6
    return kind, who, what, str(numbers), f"{spent_s:.4f}", f"{speed:.1f}"


if __name__ == "__main__":
    main()
