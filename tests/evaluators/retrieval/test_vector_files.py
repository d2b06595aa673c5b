"""Vectors from files: NumPy, Parquet and CSV, and what is wrong with some of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from dse.errors import SpecError
from dse_evaluators.retrieval.vector_files import digest_of, has_queries, read_vectors

VECTORS = np.array([[1.5, 2.0], [0.25, -3.0], [4.0, 0.5]])
TABLE = pa.table({"x": VECTORS[:, 0], "y": VECTORS[:, 1]})
LISTS = pa.table({"id": [1, 2, 3], "vector": VECTORS.tolist()})


def write_npy(path):
    np.save(path, VECTORS)


def write_one(path):
    np.savez(path, data=VECTORS)


def write_two(path):
    np.savez(path, vectors=VECTORS, queries=VECTORS[:1])


def write_table(path):
    parquet.write_table(TABLE, path)


def write_lists(path):
    parquet.write_table(LISTS, path)


def write_csv(path):
    csv.write_csv(TABLE, path)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("a.npy", write_npy),
        ("a.npz", write_one),
        ("b.npz", write_two),
        ("a.parquet", write_table),
        ("b.parquet", write_lists),
        ("a.csv", write_csv),
    ],
)
def test_each_kind_of_file_has_the_same_vectors(tmp_path, name, write):
    path = str(tmp_path / name)
    write(path)
    found = read_vectors(path, "vectors")
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, VECTORS)
    assert has_queries(path) == (name == "b.npz")


def test_the_digest_changes_with_the_numbers(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, VECTORS)
    first = digest_of(str(path), "vectors")
    np.save(path, VECTORS + 1)
    assert digest_of(str(path), "vectors") != first


def write_text(path):
    path.write_text("x,y\n1,a\n")


def write_hole(path):
    path.write_text("x,y\n1,2\n1,\n")


def write_damage(path):
    path.write_bytes(b"\x93NUMPY and no more")


def write_ragged(path):
    parquet.write_table(pa.table({"vector": [[1.0, 2.0], [1.0]]}), path)


def write_others(path):
    np.savez(path, a=VECTORS, b=VECTORS)


def write_pickle(path):
    np.save(path, np.array([{}], dtype=object), allow_pickle=True)


@pytest.mark.parametrize(
    ("name", "write", "problem"),
    [
        ("a.csv", write_text, "column 'y' holds string"),
        ("b.csv", write_hole, "column 'y' has 1 empty cells"),
        ("a.npy", write_damage, "cannot be read as arrays"),
        ("b.npy", write_pickle, "cannot be read as arrays"),
        ("a.parquet", write_ragged, "row 1 has 1 numbers, and row 0 has 2"),
        ("a.npz", write_others, "has no array 'vectors', and 2 others"),
        ("a.txt", write_text, "is no file of vectors by its name"),
    ],
)
def test_a_file_without_vectors_is_one_error(tmp_path, name, write, problem):
    path = tmp_path / name
    write(path)
    with pytest.raises(SpecError, match=problem):
        read_vectors(str(path), "vectors")


def test_a_missing_file_names_the_nearest(tmp_path):
    np.save(tmp_path / "vectors.npy", VECTORS)
    with pytest.raises(SpecError, match=r"there is no file .*vektors\.npy") as caught:
        read_vectors(str(tmp_path / "vektors.npy"), "vectors")
    assert "vectors.npy" in str(caught.value.hint)
