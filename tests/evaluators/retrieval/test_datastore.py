"""A datastore beside a language model: sums by hand, the user's text, and what is refused."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import PluginError, SpecError
from dse_evaluators.retrieval.datastore import Datastore
from dse_evaluators.retrieval.neighbour_search import NearestKeys, find_neighbours, weigh_followers
from dse_evaluators.retrieval.text_windows import load_windows

pytest.importorskip("faiss")

LINE = "And there the sailor kept a parrot of green and a clock, {}; so he slept.\n"


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "book.txt"
    path.write_text("".join(LINE.format("abcdefgh"[row % 8]) for row in range(80)))
    return str(path)


def test_text_that_repeats_takes_fewer_bits_with_more_of_it_in_the_datastore(text):
    made = Datastore(text=text, knobs={"neighbours": 8, "share": 0.5})
    found = made.evaluate(Batch.of([{"entries": count} for count in (128, 1024, 4096)]))
    few, more, most = found.columns["bits_per_character"]
    assert most < more < few
    assert most < 0.5 * found.columns["model_bits"][0]
    np.testing.assert_array_equal(found.columns["size"], [385 * n for n in (128, 1024, 4096)])
    assert (found.spread["bits_per_character"] > 0).all()


def test_keys_in_fewer_bits_and_lists_cost_as_much_as_they_say(text):
    made = Datastore(text=text, knobs={"neighbours": 4, "entries": 1024})
    designs = [
        {"share": 0},
        {"key_format": "fp16"},
        {"lists": 8, "probes": 8},
        {"lists": 8, "probes": 1},
    ]
    columns = made.evaluate(Batch.of(designs)).columns
    alone, half, whole, one = range(4)
    assert columns["bits_per_character"][alone] == columns["model_bits"][alone]
    assert columns["size"][half] == 1024 * (96 * 2 + 1)
    assert columns["size"][whole] == 1024 * (96 * 4 + 1) + 8 * 96 * 4
    every, some = (columns["operations"][row] - columns["operations"][half] for row in (whole, one))
    assert every == 2 * 96 * 8  # all keys, and the eight centres
    assert -2 * 96 * 1024 < some < -0.5 * 2 * 96 * 1024


def test_weights_of_neighbours_fall_with_their_distance():
    far = np.float32(np.inf)
    distances = np.array([[1.0, 3.0, 3.0], [0.0, far, far], [far, far, far]], np.float32)
    found = NearestKeys(distances, np.array([[7, 5, 7], [5, 7, 7], [7, 7, 7]]), 3.0)
    own = weigh_followers(found, np.array([7, 7, 7]), temperature=2.0)
    fall = np.exp(-1)
    np.testing.assert_allclose(own, [(1 + fall) / (1 + 2 * fall), 0, 0])


def test_exact_neighbours_are_those_of_a_sort_of_all_distances():
    rng = np.random.default_rng(3)
    keys, queries = (rng.normal(size=(count, 8)).astype("f4") for count in (60, 9))
    followers = np.arange(60)
    found = find_neighbours(keys, followers, queries, k=5, lists=0, probes=1)
    distances = ((queries[:, None] - keys[None]) ** 2).sum(axis=2)
    np.testing.assert_array_equal(found.followers, np.argsort(distances, axis=1)[:, :5])
    assert found.compared == 60


def test_no_window_is_both_stored_and_held_out(text):
    found = load_windows(text)
    whole = [one.shape[0] for one in (found.stored, *found.held_out.values())]
    assert sum(whole) == (80 * (len(LINE) - 1) - 1) // 128
    assert min(whole) == 2


@pytest.mark.parametrize(
    ("design", "reason"),
    [
        ({"entries": 10**6}, "1,000,000 entries, and the text has"),
        ({"entries": 10, "lists": 20}, "20 lists, and 10 entries"),
        ({"entries": 100, "lists": 4, "probes": 5}, "probes is 5, and there are 4 lists"),
        ({"entries": 100, "probes": 2}, "probes has no effect in this design"),
    ],
)
def test_a_datastore_that_cannot_be_is_a_fault(text, design, reason):
    assert reason in Datastore(text=text).evaluate(Batch.of([design])).failures[0].reason


def test_a_datastore_larger_than_memory_is_not_built(text, monkeypatch):
    made = Datastore(text=text)
    free = type("Memory", (), {"available": 1000})
    monkeypatch.setattr("psutil.virtual_memory", lambda: free)
    (failure,) = made.evaluate(Batch.of([{"entries": 100}])).failures.values()
    assert "would take 75 KiB of memory" in failure.reason
    assert "it was not built" in failure.reason


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("too short", "has 9 characters"),
        ("a\nb\tc" * 2000, r"book.txt:2: character 2 is '\\t'"),
    ],
)
def test_a_text_that_the_model_cannot_read_is_one_error(tmp_path, content, problem):
    path = tmp_path / "book.txt"
    path.write_text(content)
    with pytest.raises(SpecError, match=problem):
        Datastore(text=str(path)).check_values({})


def test_a_text_that_is_not_there_is_refused_with_the_nearest_name(text):
    with pytest.raises(SpecError, match="there is no file") as caught:
        Datastore(text=text.replace("book", "bok"))
    assert "book.txt" in caught.value.hint


@pytest.fixture
def recorded():
    """Return arrays of a model with two numbers a state, whose neighbours know what follows."""
    keys = np.array([[0, 0], [0, 9], [9, 0], [9, 9]], np.float32)
    return {
        "keys": keys,
        "followers": np.array([3, 300, 5, 6]),
        "search_states": keys[[0, 1, 1, 3]],
        "search_targets": np.array([3, 300, 300, 5]),
        "search_logprobs": np.log([0.5, 0.25, 0.25, 0.125]),
        "search_sequences": np.array([0, 0, 1, 1]),
        "operations": np.array(1e6),
        "model_size": np.array(4000),
    }


def test_states_of_the_users_model_give_bits_by_hand(tmp_path, recorded):
    path = tmp_path / "states.npz"
    np.savez(path, **recorded)
    made = Datastore(states=str(path), knobs={"neighbours": 1, "share": 0.5})
    found = made.evaluate(Batch.of([{"entries": 4}]))
    row = {name: column[0] for name, column in found.columns.items()}
    mixed = np.array([0.75, 0.625, 0.625, 0.0625])
    assert row["bits_per_character"] == pytest.approx(-np.log2(mixed).mean())
    assert row["model_bits"] == pytest.approx((1 + 2 + 2 + 3) / 4)
    assert row["size"] == 4 * (2 * 4 + 2)  # tokens above 255 take two bytes
    assert row["operations"] == 1e6 + 2 * 2 * 4
    assert row["model_size"] == 4000
    # the sequences' means are 1.5 and 2.5: their standard error is half of the distance
    assert found.spread["model_bits"][0] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("name", "array", "problem"),
    [
        ("followers", np.arange(3), r"followers has the shape \(3,\)"),
        ("followers", np.array([1, 2, 3, -1]), "numbers that are no tokens"),
        ("search_states", np.ones((4, 3)), "keys have 2 numbers, and search_states 3"),
        ("search_logprobs", np.array([0, -1, 0.5, 0]), "search_logprobs, row 2 is 0.5"),
        ("search_logprobs", np.array([0, -1, np.nan, 0]), "search_logprobs, row 2 is nan"),
        ("keys", np.array([[np.inf, 0]] * 4), "which is not finite"),
        ("keys", np.array([{}] * 4), "cannot be read as an .npz file"),
        ("operations", np.array([1, 2]), "operations is no single number"),
        ("model_size", np.array(-1), "model_size is -1"),
        ("search_targets", None, "has no array 'search_targets'"),
    ],
)
def test_recorded_states_that_are_wrong_are_one_error(tmp_path, recorded, name, array, problem):
    path = tmp_path / "states.npz"
    arrays = {key: one for key, one in {**recorded, name: array}.items() if one is not None}
    np.savez(path, **arrays)
    with pytest.raises(SpecError, match=problem):
        Datastore(states=str(path)).check_values({})


def test_what_has_no_effect_beside_recorded_states_is_refused(tmp_path, recorded, text):
    path = tmp_path / "states.npz"
    np.savez(path, **recorded)
    with pytest.raises(PluginError, match="text has no effect beside states"):
        Datastore(states=str(path), text=text)
    with pytest.raises(SpecError, match="blocks has no effect with states"):
        Datastore(states=str(path)).check_values({"blocks": [1, 2]})
    with pytest.raises(SpecError, match="there is no file"):
        Datastore(states=str(tmp_path / "state.npz"))


def test_a_damaged_file_of_states_is_one_error(tmp_path, recorded):
    path = tmp_path / "states.npz"
    np.savez_compressed(path, **recorded)
    whole = path.read_bytes()
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with contextlib.suppress(SpecError):  # or the bit has no effect on what is read
            Datastore(states=str(path)).check_values({})
