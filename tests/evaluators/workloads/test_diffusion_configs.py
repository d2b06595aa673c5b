"""Diffusion models of the user from the config.json of diffusers: counts, and what is refused."""

from __future__ import annotations

import json

import pytest

from dse.errors import SpecError
from dse_evaluators.workloads.catalogue import table_of
from dse_evaluators.workloads.diffusion_config import diffusion_table
from dse_evaluators.workloads.own.own_workload import workload_of_option

SD15 = {"_class_name": "UNet2DConditionModel", "sample_size": 64, "cross_attention_dim": 768}
SDXL = {
    "_class_name": "UNet2DConditionModel",
    "sample_size": 128,
    "cross_attention_dim": 2048,
    "block_out_channels": [320, 640, 1280],
    "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
    "up_block_types": ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"],
    "transformer_layers_per_block": [1, 2, 10],
    "attention_head_dim": [5, 10, 20],
    "addition_embed_type": "text_time",
    "projection_class_embeddings_input_dim": 2816,
}
VIDEO = {"_class_name": "UNet3DConditionModel", "sample_size": 32}
PIXART = {"_class_name": "PixArtTransformer2DModel", "sample_size": 128, "caption_channels": 4096}
DIT = {"_class_name": "DiTTransformer2DModel", "sample_size": 32}

# Parameters and operations of the classes of diffusers 0.42.1 with these files, counted by
# torch.utils.flop_counter on the meta device; 16 frames, 77 words (PixArt 120).
COUNTED = [
    (SD15, 859_520_964, 803_273_441_280),
    (SDXL, 2_567_463_684, 6_761_236_398_080),
    (VIDEO, 1_411_233_860, 4_887_105_142_784),
    (PIXART, 611_349_152, 6_509_523_566_592),
]


@pytest.mark.parametrize(("content", "parameters", "flops"), COUNTED)
def test_a_file_has_the_parameters_and_operations_that_diffusers_has(content, parameters, flops):
    table = diffusion_table(content, {}, "net")
    assert (table.parameters, 2 * table.macs) == (parameters, flops)


# Peebles and Xie 2023, tables 1 and 6: Gflops (multiply-accumulates) of a 256 x 256 picture.
PRINTED = [
    ({"num_layers": 28, "num_attention_heads": 16, "attention_head_dim": 72}, 118.64),
    ({"num_layers": 24, "num_attention_heads": 16, "attention_head_dim": 64}, 80.71),
    ({"num_layers": 12, "num_attention_heads": 12, "attention_head_dim": 64}, 23.01),
    ({"num_layers": 12, "num_attention_heads": 6, "attention_head_dim": 64}, 6.06),
]


@pytest.mark.parametrize(("sizes", "billions"), PRINTED)
def test_diffusion_transformers_have_the_printed_operations(sizes, billions):
    table = diffusion_table({**DIT, **sizes}, {}, "net")
    assert table.macs / 1e9 == pytest.approx(billions, rel=0.005)  # print shares the time embedding


def test_a_path_with_sizes_is_read_as_a_workload(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(SD15))
    found = workload_of_option(f"{tmp_path}/config.json:latent=32")
    assert found.table == table_of("sd-unet:latent=32")


def test_frames_multiply_the_operations_of_a_video(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(VIDEO))
    short = workload_of_option(f"{tmp_path}:frames=8").table.macs
    assert workload_of_option(f"{tmp_path}:frames=16").table.macs > 2 * short


WRONG = [
    ({**SD15, "_class_name": "UNet2DConditonModel"}, {}, "did you mean 'UNet2DConditionModel'"),
    ({**SD15, "class_embed_type": "timestep"}, {}, "class_embed_type is 'timestep'"),
    ({**SD15, "down_block_types": ["CrossAttnDownBlok2D"] * 4}, {}, "CrossAttnDownBlock2D"),
    ({**SD15, "up_block_types": ["UpBlock2D"]}, {}, "a list of 4"),
    ({**SD15, "attention_head_dim": 7}, {}, "a multiple of the number of heads, 7"),
    ({**SD15, "layers_per_block": [2, 2]}, {}, "a whole number from 1, or a list of 4"),
    ({**SD15, "block_out_channels": []}, {}, "a list of whole numbers"),
    ({**SD15, "sample_size": "64"}, {}, "sample_size cannot be '64'"),
    (SD15, {"latent": "60"}, "a multiple of 8"),
    (SD15, {"laten": "64"}, "did you mean 'latent'"),
    (SD15, {"frames": "4"}, "has no key 'frames'"),
    (DIT, {"latent": "33"}, "a multiple of the patch, 2"),
    (DIT, {"words": "77"}, "has no key 'words'"),
    ({"_class_name": "PixArtTransformer2DModel"}, {}, "caption_channels cannot be None"),
    ({**VIDEO, "attention_head_dim": 60}, {}, "a multiple of attention_head_dim, 60"),
]


@pytest.mark.parametrize(("content", "keys", "message"), WRONG)
def test_a_file_that_cannot_be_read_names_its_mistake_and_the_mend(content, keys, message):
    with pytest.raises(SpecError) as refused:
        diffusion_table(content, keys, "net")
    assert message in f"{refused.value.problem} {refused.value.hint}"
