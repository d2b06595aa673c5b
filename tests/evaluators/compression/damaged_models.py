"""Two hundred damaged models and data of users, made from sound ones with a fixed seed."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn

from tests.evaluators.compression.damaged_archives import (
    ABSURD,
    Damage,
    exported_damages,
    images,
)
from tests.evaluators.compression.own_models import (
    LLAMA,
    llama_weights,
    write_llama,
    write_onnx,
    write_safetensors,
)

KINDS = ("DOUBLE", "FLOAT16", "INT64", "STRING", "BFLOAT16", "UNDEFINED")
SIZES = [key for key, value in LLAMA.items() if isinstance(value, int)]
HEADERS = (0, 1, 7, 2**31, 2**40, 2**63, 2**64 - 1)


class Bomb:
    """Object whose unpickling leaves a file behind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> Any:
        return Path.touch, (self.folder / "ran",)


def damages(network: bytes) -> Iterator[Damage]:
    """Yield all of them.

    Args:
        network: a sound ONNX file.
    """
    rng = np.random.default_rng(7)
    yield from _onnx_bytes(network, rng)
    yield from _onnx_graphs(network)
    yield from exported_damages(rng)
    yield from _safetensors_bytes(rng)
    yield from _safetensors_headers(rng)
    yield from _weights(rng)
    yield from _shards()
    yield from _configs(rng)
    yield from _pickles()
    yield from _data()


def sound_network(folder: Path) -> bytes:
    """Return the bytes of a small sound ONNX file."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 2)).eval()
    write_onnx(folder / "net.onnx", net, torch.zeros(1, 1, 4, 4))
    return (folder / "net.onnx").read_bytes()


def tokens() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 32, (16, 6))


def _onnx(content: bytes) -> Callable[[Path], tuple[Any, Any]]:
    def write(folder: Path) -> tuple[Any, Any]:
        (folder / "net.onnx").write_bytes(content)
        return str(folder / "net.onnx"), images()

    return write


def _onnx_bytes(network: bytes, rng: np.random.Generator) -> Iterator[Damage]:
    for cut in np.sort(rng.integers(0, len(network), 15)):
        yield Damage(f"onnx cut at {cut}", _onnx(network[:cut]))
    for place in np.sort(rng.integers(0, len(network), 25)):
        flipped = bytearray(network)
        flipped[place] ^= 1 << int(rng.integers(8))
        yield Damage(f"onnx flipped at {place}", _onnx(bytes(flipped)), may_run=True)


def _onnx_graphs(network: bytes) -> Iterator[Damage]:
    def changed(name: str, change: Callable[[Any], None], *, may_run: bool = False) -> Damage:
        model = onnx.load_model_from_string(network)
        change(model)
        return Damage(f"onnx {name}", _onnx(model.SerializeToString()), may_run)

    nodes = len(onnx.load_model_from_string(network).graph.node)
    for kind in KINDS:
        yield changed(f"weight {kind}", lambda m, k=kind: _retype(m, k))
    for place in range(nodes):
        yield changed(f"operator {place}", lambda m, p=place: _rename_operator(m, p))
        yield changed(f"dangling {place}", lambda m, p=place: _dangle(m, p))
    for place in range(4):
        yield changed(f"lost weight {place}", lambda m, p=place: _lose(m, p))
        yield changed(f"dims {place}", lambda m, p=place: _redim(m, p))
        yield changed(f"nan {place}", lambda m, p=place: _spoil(m, p))
    yield changed("no opset", lambda m: m.ClearField("opset_import"))
    yield changed("future opset", lambda m: setattr(m.opset_import[0], "version", 9999))
    yield changed("no graph", lambda m: m.ClearField("graph"))
    yield changed("no output", lambda m: m.graph.ClearField("output"))
    yield changed("reversed", lambda m: m.graph.node.sort(key=lambda one: one.op_type == "Conv"))
    yield changed("integer input", lambda m: _set_input(m, 7))
    yield changed("fixed batch", lambda m: _fix_batch(m, 7))
    yield changed("dynamic axes", _free_axes, may_run=True)


def _retype(model: Any, kind: str) -> None:
    tensor = model.graph.initializer[0]
    number = onnx.TensorProto.DataType.Value(kind)
    if kind in ("DOUBLE", "FLOAT16"):
        dtype = np.float64 if kind == "DOUBLE" else np.float16
        array = numpy_helper.to_array(tensor).astype(dtype)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    tensor.data_type = number


def _rename_operator(model: Any, place: int) -> None:
    model.graph.node[place].op_type += "Fused"


def _dangle(model: Any, place: int) -> None:
    model.graph.node[place].input[0] = "nowhere"


def _lose(model: Any, place: int) -> None:
    del model.graph.initializer[place]


def _redim(model: Any, place: int) -> None:
    model.graph.initializer[place].dims[0] += 2**33


def _spoil(model: Any, place: int) -> None:
    tensor = model.graph.initializer[place]
    array = numpy_helper.to_array(tensor).copy()
    array.reshape(-1)[0] = np.nan if place % 2 else np.inf
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _set_input(model: Any, kind: int) -> None:
    model.graph.input[0].type.tensor_type.elem_type = kind


def _fix_batch(model: Any, size: int) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = size


def _free_axes(model: Any) -> None:
    for place, axis in enumerate(model.graph.input[0].type.tensor_type.shape.dim):
        axis.dim_param = f"axis{place}"


def _llama(change: Callable[[Path], None]) -> Callable[[Path], tuple[Any, Any]]:
    def write(folder: Path) -> tuple[Any, Any]:
        change(write_llama(folder / "llama"))
        return str(folder / "llama"), tokens()

    return write


def _safetensors(content: bytes) -> Callable[[Path], tuple[Any, Any]]:
    return _llama(lambda folder: _write(folder / "model.safetensors", content))


def _write(path: Path, content: bytes | str) -> None:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def _parts() -> tuple[dict[str, Any], bytes]:
    """Return the header and the data of the sound safetensors file."""
    header: dict[str, Any] = {}
    data = b""
    for name, array in llama_weights().items():
        start, data = len(data), data + array.tobytes()
        offsets = [start, len(data)]
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": offsets}
    return header, data


def _joined(header: Any, data: bytes, length: int | None = None) -> bytes:
    text = json.dumps(header).encode()
    size = len(text) if length is None else length
    return size.to_bytes(8, "little") + text + data


def _safetensors_bytes(rng: np.random.Generator) -> Iterator[Damage]:
    header, data = _parts()
    sound = _joined(header, data)
    for cut in np.sort(rng.integers(0, len(sound), 12)):
        yield Damage(f"safetensors cut at {cut}", _safetensors(sound[:cut]))
    text = len(json.dumps(header))
    for place in np.sort(rng.integers(0, 8 + text, 20)):
        flipped = bytearray(sound)
        flipped[place] ^= 1 << int(rng.integers(8))
        content = _safetensors(bytes(flipped))
        yield Damage(f"safetensors flipped at {place}", content, may_run=True)
    for length in HEADERS:
        content = _safetensors(_joined(header, data, length))
        yield Damage(f"safetensors header of {length} bytes", content)


def _safetensors_headers(rng: np.random.Generator) -> Iterator[Damage]:
    rows: list[tuple[str, str, Any]] = [
        ("data_offsets", "overlap", [0, 4]),
        ("data_offsets", "turned", [400, 0]),
        ("data_offsets", "negative", [-4, 0]),
        ("data_offsets", "beyond", [0, 2**50]),
        ("data_offsets", "fractions", [0.5, 4.5]),
        ("data_offsets", "infinite", [0, float("inf")]),
        ("data_offsets", "texts", ["0", "4"]),
        ("data_offsets", "three", [0, 4, 8]),
        ("shape", "transposed", [16, 32, 1]),
        ("shape", "negative", [-16, -32]),
        ("shape", "huge", [2**40, 2**40]),
        ("shape", "text", "16"),
        ("shape", "fraction", [16.0, 32.0]),
        ("dtype", "F64", "F64"),
        ("dtype", "F16", "F16"),
        ("dtype", "F8_E4M3", "F8_E4M3"),
        ("dtype", "I8", "I8"),
        ("dtype", "list", ["F32"]),
        ("dtype", "null", None),
    ]
    for key, name, value in rows:
        header, data = _parts()
        header[str(rng.choice(list(header)))][key] = value
        yield Damage(f"safetensors {key} {name}", _safetensors(_joined(header, data)))
    for name, whole in (("list", []), ("number", 3), ("text", "a"), ("rows", {"a": 3})):
        yield Damage(f"safetensors header is {name}", _safetensors(_joined(whole, b"")))
    header, data = _parts()
    shared = {**header, "lm_head.weight": header["model.embed_tokens.weight"]}
    yield Damage("safetensors shared bytes", _safetensors(_joined(shared, data)))


def _weights(rng: np.random.Generator) -> Iterator[Damage]:
    def changed(name: str, change: Callable[[dict[str, np.ndarray]], None]) -> Damage:
        def edit(folder: Path) -> None:
            arrays = llama_weights()
            change(arrays)
            write_safetensors(folder / "model.safetensors", arrays)

        return Damage(f"weights {name}", _llama(edit))

    names = list(llama_weights())
    for name in names:
        yield changed(f"without {name}", lambda arrays, n=name: arrays.pop(n))
    for name in rng.choice(names, 6, replace=False):
        spoilt = np.nan if rng.random() < 0.5 else np.inf
        yield changed(f"{spoilt} {name}", lambda arrays, n=name, s=spoilt: arrays[n].fill(s))
    for name in rng.choice(names, 4, replace=False):
        yield changed(f"cut {name}", lambda arrays, n=name: arrays.update({n: arrays[n][:-1]}))


def _shards() -> Iterator[Damage]:
    def index(text: str) -> Callable[[Path], tuple[Any, Any]]:
        return _llama(lambda folder: _write(folder / "model.safetensors.index.json", text))

    def of(place: str) -> str:
        return json.dumps({"weight_map": dict.fromkeys(llama_weights(), place)})

    yield Damage("shard missing", index(of("model-2.safetensors")))
    yield Damage("shard outside", index(of("../llama/model.safetensors")))
    yield Damage("shard absolute", index(of("/etc/passwd")))
    yield Damage("shard pickled", index(of("model.bin")))
    yield Damage("index cut", index(of("model.safetensors")[:50]))
    yield Damage("index empty", index("{}"))
    yield Damage("index list", index("[]"))

    def twice(folder: Path) -> None:
        content = (folder / "model.safetensors").read_bytes()
        (folder / "other.safetensors").write_bytes(content)
        names = {"lm_head.weight": "other.safetensors", "model.norm.weight": "model.safetensors"}
        _write(folder / "model.safetensors.index.json", json.dumps({"weight_map": names}))

    yield Damage("shards with the same tensors", _llama(twice))


def _configs(rng: np.random.Generator) -> Iterator[Damage]:
    def config(name: str, text: str | bytes) -> Damage:
        return Damage(f"config {name}", _llama(lambda one: _write(one / "config.json", text)))

    for key in (*SIZES, "model_type"):
        if key != "num_key_value_heads":
            rest = {one: value for one, value in LLAMA.items() if one != key}
            yield config(f"without {key}", json.dumps(rest))
    for _ in range(18):
        key, value = str(rng.choice(SIZES)), ABSURD[int(rng.integers(len(ABSURD)))]
        yield config(f"{key} {value!r}", json.dumps({**LLAMA, key: value}))
    for key, value in (
        ("model_type", "mamba"),
        ("model_type", ["llama"]),
        ("hidden_act", "mish"),
        ("rms_norm_eps", "1e-5"),
        ("rope_theta", 0),
        ("rope_scaling", {"rope_type": "dynamic", "factor": 2.0}),
        ("rope_scaling", "linear"),
        ("quantization_config", {"bits": 4}),
    ):
        yield config(f"{key} {value!r}", json.dumps({**LLAMA, key: value}))
    for name, text in (
        ("cut", json.dumps(LLAMA)[:40]),
        ("deep", "[" * 100_000),
        ("list", "[]"),
        ("empty", ""),
        ("latin", json.dumps(LLAMA).encode() + b"\xff"),
        ("pickled", pickle.dumps(LLAMA)),
    ):
        yield config(name, text)


def _pickles() -> Iterator[Damage]:
    def pickled(name: str) -> Callable[[Path], tuple[Any, Any]]:
        def write(folder: Path) -> tuple[Any, Any]:
            (folder / name).write_bytes(pickle.dumps(Bomb(folder)))
            return str(folder / name), images()

        return write

    for name in ("net.pt", "net.pth", "net.bin", "net.pkl", "net.ckpt", "net.pt2", "net.onnx"):
        yield Damage(f"pickle {name}", pickled(name))

    def inside(folder: Path) -> None:
        _write(folder / "model.safetensors", pickle.dumps(Bomb(folder.parent)))

    yield Damage("pickle in a folder", _llama(inside))


def _data() -> Iterator[Damage]:
    def given(name: str, data: Callable[[Path], Any]) -> Damage:
        return Damage(f"data {name}", lambda folder: (nn.Linear(16, 2), data(folder)))

    def archive(**arrays: Any) -> Callable[[Path], Any]:
        def write(folder: Path) -> Any:
            np.savez(folder / "data.npz", **arrays)
            return str(folder / "data.npz")

        return write

    def damaged(folder: Path) -> Any:
        path = Path(archive(inputs=points, targets=labels)(folder))
        path.write_bytes(path.read_bytes()[:200])
        return str(path)

    points, labels = images()[0].reshape(24, 16), images()[1]
    yield given("fewer labels", archive(inputs=points, targets=labels[:-1]))
    yield given("more labels", archive(inputs=points, targets=np.arange(25) % 2))
    yield given("no labels", archive(inputs=points, targets=labels[:0]))
    yield given("objects", archive(inputs=points, targets=np.array([None] * 24)))
    yield given("nan", archive(inputs=points * np.nan, targets=labels))
    yield given("split of another length", archive(inputs=points, targets=labels, split=["test"]))
    yield given("other width", archive(inputs=points[:, :5], targets=labels))
    yield given("class beyond the outputs", archive(inputs=points, targets=np.arange(24) % 3))
    yield given("cut", damaged)
