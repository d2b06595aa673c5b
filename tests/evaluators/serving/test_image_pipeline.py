"""Image servers: stages, networks and images of the user, and what is refused."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import EvaluationError, PluginError, SpecError
from dse_evaluators.serving.image_network import read_network
from dse_evaluators.serving.image_pipeline import ImagePipeline
from dse_evaluators.serving.image_requests import encode_photos, shrink
from dse_evaluators.serving.pipeline_stages import ImageServer, Preprocessing

Image = pytest.importorskip("PIL.Image")
onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

QUICK = {"limit": 0.01, "precision": 0.9}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("images")
    for name, colour in (("a.png", "red"), ("b.jpg", "blue")):
        Image.new("RGB", (64, 48), colour).save(path / name)
    (path / "notes.txt").write_text("no image")
    return path


def write_mean_network(path, shape, kind=None):
    """Write a network that returns the mean of each image, and return its path."""
    kind = kind or onnx.TensorProto.FLOAT
    make = onnx.helper
    nodes = [
        make.make_node("Cast", ["images"], ["numbers"], to=onnx.TensorProto.FLOAT),
        make.make_node("ReduceMean", ["numbers"], ["means"], axes=[1, 2, 3], keepdims=0),
    ]
    graph = make.make_graph(
        nodes,
        "mean",
        [make.make_tensor_value_info("images", kind, shape)],
        [make.make_tensor_value_info("means", onnx.TensorProto.FLOAT, [None])],
    )
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, path)
    return str(path)


def make_server(model, requests, batch, workers=1):
    network = read_network(model, None)
    stage = Preprocessing(input=network.input, scales_in_decoder=False, resampling="box")
    session = network.session(1)
    return ImageServer(
        requests=requests, preprocessing=stage, session=session, batch=batch, workers=workers
    )


def test_own_network_answers_own_images_in_turn(tmp_path, folder):
    model = write_mean_network(tmp_path / "net.onnx", ["n", 8, 8, 3], onnx.TensorProto.UINT8)
    requests = [(folder / name).read_bytes() for name in ("a.png", "b.jpg")]
    with make_server(model, requests, batch=2, workers=2) as server:
        (means,) = server.answer()
        (after,) = server.answer_overlapped()
    assert means == pytest.approx([85, 85], abs=1)  # one of three channels is 255
    assert after == pytest.approx(means)


def test_floats_are_normalised_by_channel(tmp_path, folder):
    model = write_mean_network(tmp_path / "net.onnx", ["n", 3, 8, 8])
    with make_server(model, [(folder / "a.png").read_bytes()], batch=1) as server:
        (found,) = server.preprocess()
    expected = [(255 - 123.675) / 58.395, -116.28 / 57.12, -103.53 / 57.375]
    assert found.mean(axis=(1, 2)) == pytest.approx(expected, rel=1e-4)


def test_batch_of_shipped_network_equals_single_images():
    network = read_network("squeezenet", None)
    images = np.random.default_rng(1).random((2, 3, 224, 224), np.float32)
    session = network.session(1)
    both = session.run(images)[0]
    alone = np.concatenate([session.run(one[None])[0] for one in images])
    np.testing.assert_allclose(both, alone, rtol=1e-5)


def test_decoder_halves_only_while_image_covers_input(tmp_path):
    network = read_network(write_mean_network(tmp_path / "n.onnx", ["n", 3, 40, 40]), None)
    stage = Preprocessing(input=network.input, scales_in_decoder=True, resampling="box")
    assert stage.decode(encode_photos(320, 90)[0]).size == (80, 60)
    assert stage.decode(encode_photos(100, 90)[0]).size == (100, 75)


def test_wide_photos_keep_their_detail():
    narrow, wide = encode_photos(512, 90)[0], encode_photos(1536, 90)[0]
    assert len(wide) / len(narrow) > 6  # nine times the pixels
    assert Image.open(BytesIO(wide)).size == (1536, 1152)


def test_client_sends_images_in_size_of_network():
    (small,) = shrink(encode_photos(512, 90)[:1], (32, 16), 80)
    assert Image.open(BytesIO(small)).size == (32, 16)


def test_stages_are_measured_with_errors(tmp_path, folder):
    model = write_mean_network(tmp_path / "net.onnx", ["n", 3, 8, 8])
    own = ImagePipeline(images=str(folder), model=model, **QUICK)
    found = own.evaluate(Batch.of([{"batch": 2, "workers": 2}, {"resize_at": "decoder"}]))
    assert not found.failures
    before, inference = (found.columns[f"{one}_time"] for one in ("preprocessing", "inference"))
    assert found.columns["preprocessing_share"] == pytest.approx(before / (before + inference))
    assert (found.columns["throughput"] * found.columns["latency"]) == pytest.approx([2, 1])
    assert (found.spread["latency"] >= 0).all()


@pytest.mark.parametrize(
    ("design", "reason"),
    [
        ({"image_width": 100}, "image_width has no effect on images of a folder"),
        ({"jpeg_quality": 50}, "jpeg_quality has no effect on images of a folder"),
        ({"workers": 2}, "2 workers, and a batch of 1"),
        ({"threads": 1000}, "1000 threads at the same time"),
    ],
)
def test_designs_without_effect_or_cores_are_refused(tmp_path, folder, design, reason):
    model = write_mean_network(tmp_path / "net.onnx", ["n", 3, 8, 8])
    found = ImagePipeline(images=str(folder), model=model, **QUICK).evaluate(Batch.of([design]))
    assert found.failures[0].reason.startswith(reason)


def test_file_of_one_image_refuses_a_batch(tmp_path, folder):
    model = write_mean_network(tmp_path / "net.onnx", [1, 3, 8, 8])
    own = ImagePipeline(images=str(folder), model=model, **QUICK)
    found = own.evaluate(Batch.of([{"batch": 2}]))
    assert found.failures[0].kind == "infeasible"
    assert "takes 1 images at once" in found.failures[0].reason


@pytest.mark.parametrize(
    ("shape", "side", "problem"),
    [
        (["n", 3, "h", "w"], None, "takes images of any size"),
        (["n", 3, 8, 8], 16, "side is 16"),
        (["n", 10], None, "of shape"),
    ],
)
def test_networks_whose_input_is_no_image_are_refused(tmp_path, shape, side, problem):
    path = tmp_path / "net.onnx"
    make = onnx.helper
    graph = make.make_graph(
        [make.make_node("Identity", ["x"], ["y"])],
        "same",
        [make.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [make.make_tensor_value_info("y", onnx.TensorProto.FLOAT, shape)],
    )
    onnx.save(make.make_model(graph, opset_imports=[make.make_opsetid("", 13)], ir_version=8), path)
    with pytest.raises(EvaluationError, match=problem):
        read_network(str(path), side)


def test_misspelled_names_are_refused_with_the_nearest(tmp_path, folder):
    with pytest.raises(PluginError, match="no network 'resnet5'") as network:
        ImagePipeline(model="resnet5")
    assert "resnet50" in network.value.hint
    with pytest.raises(SpecError, match="there is no folder") as images:
        ImagePipeline(images=f"{folder}x", model="resnet50")
    assert folder.name in images.value.hint
    with pytest.raises(SpecError, match="has no image"):
        ImagePipeline(images=str(tmp_path), model="resnet50")


def test_damaged_image_is_named(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"no JPEG")
    own = ImagePipeline(images=str(tmp_path), model="squeezenet", **QUICK)
    found = own.evaluate(Batch.of([{}]))
    assert "a.jpg cannot be decoded" in found.failures[0].reason
