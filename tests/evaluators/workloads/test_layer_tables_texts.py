"""A workload by its text: names alone, names with keys, and what is said of a wrong one."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.errors import SpecError
from dse_evaluators.workloads.catalogue import FAMILIES, WORKLOADS, layers_of, table_of


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("llama2-7b", "llama2-7b:prefill=2048,batch=1"),
        ("gpt2", "gpt2:prefill=1024"),
        ("bert-base", "bert-base:tokens=128"),
        ("sd-unet", "sd-unet:latent=64"),
        ("paradnn-fc", "paradnn-fc:layers=8,nodes=512,input=2000,output=200"),
        ("paradnn-rnn", "paradnn-rnn:cell=lstm"),
        ("paradnn-cnn:blocks=3", "paradnn-cnn:block=residual,blocks=3"),
        ("vgg16", " VGG16 "),
        ("llama2-7b:decode=4", "llama2-7b: decode = 4"),
        ("vgg16", "vgg16:"),
    ],
)
def test_what_is_left_out_is_the_default(short, long):
    assert layers_of(short) == layers_of(long)


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("llama2-8b", "workload cannot be 'llama2-8b'", "did you mean 'llama3-8b'?"),
        ("resnet-50", "workload cannot be 'resnet-50'", "did you mean 'resnet50'?"),
        ("onxx:m.onnx", "workload cannot be 'onxx:m.onnx'", "did you mean 'onnx'?"),
        ("onnx:", "workload cannot be 'onnx:'", "as in 'onnx:model.onnx,batch=1'"),
        ("llama2-7b:prefil=3", "has no key 'prefil'", "did you mean 'prefill'?"),
        ("vgg16:batch=3", "has no key 'batch'", "it takes no keys: write its name alone"),
        ("gpt2:decode=4,prefill=3", "is both prefill and decode", "leave one of them out"),
        ("gpt2:decode=4,decode=3", "has the key 'decode' twice", ""),
        ("gpt2:decode=1025", "decode is '1025'", "decode goes from 1 to 1024; did you mean 1024?"),
        ("gpt2:decode=0", "decode is '0'", "decode goes from 1 to 1024; did you mean 1?"),
        ("gpt2:decode=-1", "decode is '-1'", "a whole number from 1 to 1024"),
        ("gpt2:decode=1.5", "decode is '1.5'", "a whole number from 1 to 1024"),
        ("gpt2:decode", "decode is ''", "a whole number from 1 to 1024"),
        ("paradnn-rnn:cell=lstn", "cell is 'lstn'", "did you mean 'lstm'?"),
        ("sd-unet:latent=60", "latent is 60", "it is halved three times: a multiple of 8"),
    ],
)
def test_a_wrong_text_is_told_with_what_would_mend_it(text, problem, hint):
    with pytest.raises(SpecError) as caught:
        layers_of(text)
    assert problem in caught.value.problem
    assert caught.value.hint == hint


@given(st.sampled_from(["", "onnx:", "gpt2:", "paradnn-fc:layers="]), st.text(max_size=30))
def test_whatever_is_written_is_a_workload_or_an_error_of_ours(start, rest):
    with suppress(SpecError):
        assert layers_of(start + rest)


def test_every_name_alone_is_a_workload():
    assert set(WORKLOADS) == set(FAMILIES)
    assert all(WORKLOADS.values())


def test_a_table_is_made_once():
    assert table_of("llama3-8b:decode=77") is table_of("llama3-8b:decode=77")


@pytest.mark.parametrize("workload", WORKLOADS)
def test_no_two_layers_have_one_name(workload):
    names = [layer.name for layer in WORKLOADS[workload]]
    assert len(set(names)) == len(names)
