"""A study as one file: what is written is what is read, and damage is told."""

import json
import zlib
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.core.design import Design
from dse.core.metric import Failure
from dse.core.trial import Ask, Event, Outcome, State
from dse.errors import StorageError, StudyError
from dse.interop.archive import archive as portable
from dse.interop.archive.archive import restore
from dse.interop.archive.study_record import Record
from dse.storage.memory import MemoryStorage
from dse.storage.sql.database_storage import SqlStorage
from tests.study_records import records

FORMS = ("jsonl", "parquet")


def small() -> Record:
    storage = MemoryStorage()
    storage.create("small", {"seed": 7, "texts": {"a.yaml": "study: small"}})
    storage.add("small", [Design({"rows": rows, "format": "int8"}) for rows in (1, 2, 4, 8)])
    done = Outcome(state=State.DONE, metrics={"chip.energy": 0.1 + 0.2}, cost_s=1.5, measured=1)
    lost = Outcome(state=State.FAILED, failure=Failure(kind="crashed", reason="\x00 \udcff"))
    storage.finish("small", {2: done, 0: lost}, [Event(kind="choice", text="random")])
    return Record.of(storage, "small")


def told(path):
    """The study of the file; where it is refused, the file that the message names."""
    try:
        return portable.read_archive(path)
    except StorageError as error:
        return error.where.partition(":")[0]


def resealed(line: bytes) -> bytes:
    """The line with the check sum that it would have been written with."""
    body = line.rpartition(b',"crc32":"')[0]
    return body + b',"crc32":"%08x"}\n' % zlib.crc32(body)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=30, deadline=None)
@given(record=records())
def test_what_is_written_is_what_is_read(tmp_path_factory, form, record):
    path = tmp_path_factory.mktemp("round") / f"study.{form}"
    portable.write(record, path)
    assert portable.read_archive(path) == record


def times(record):
    trials = [(t.asked_at, t.begun_at, t.finished_at) for t in record.trials]
    return trials, [(one.begun_at, one.finished_at) for one in record.attempts]


@pytest.mark.parametrize("form", FORMS)
def test_times_go_with_a_study_though_they_make_no_two_records_unequal(tmp_path, form):
    storage = MemoryStorage()
    storage.create("timed", {"seed": 7})
    storage.add("timed", [Design({"rows": rows}) for rows in (1, 2, 4)], Ask(at=1.7e9 + 0.1))
    lost = Failure(kind="lost", reason="why")
    failed = Outcome(state=State.FAILED, failure=lost, begun_at=1.7e9, finished_at=1.7e9 + 1 / 3)
    storage.retry("timed", {1: failed})
    storage.finish("timed", {0: replace(failed, state=State.DONE, failure=None)})
    record = Record.of(storage, "timed")
    portable.write(record, tmp_path / f"study.{form}")
    read = portable.read_archive(tmp_path / f"study.{form}")
    assert times(read) == times(record)
    assert times(read)[1] == [(1.7e9, 1.7e9 + 1 / 3)]
    elsewhere = SqlStorage(f"sqlite:///{tmp_path}/studies.db")
    restore(read, elsewhere)
    assert times(Record.of(elsewhere, "timed")) == times(record)
    elsewhere.close()
    assert read == replace(record, trials=tuple(replace(t, begun_at=None) for t in record.trials))


def test_a_file_of_a_version_without_times_is_read(tmp_path):
    path = tmp_path / "study.jsonl"
    portable.write(small(), path)
    assert b"_at" not in path.read_bytes()
    assert times(portable.read_archive(path)) == ([(None, None, None)] * 4, [])


@settings(max_examples=30, deadline=None)
@given(record=records())
def test_a_study_that_was_read_is_stored_as_it_was(record):
    storage = MemoryStorage()
    restore(record, storage)
    assert Record.of(storage, record.study) == record


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(record=records())
def test_a_database_keeps_a_study_that_was_read_as_it_was(tmp_path_factory, record):
    storage = SqlStorage(f"sqlite:///{tmp_path_factory.mktemp('stored')}/studies.db")
    restore(record, storage)
    kept = Record.of(storage, record.study)
    storage.close()
    assert kept == record


@settings(max_examples=20, deadline=None)
@given(record=records())
def test_a_study_has_one_fingerprint_in_either_form(tmp_path_factory, record):
    folder = tmp_path_factory.mktemp("both")
    digests = {portable.write(record, folder / f"study.{form}") for form in FORMS}
    assert len(digests) == 1


@settings(max_examples=30, deadline=None)
@given(cut=st.integers(0, 10**6))
def test_a_file_of_lines_that_was_cut_is_refused(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("cut") / "study.jsonl"
    portable.write(small(), path)
    content = path.read_bytes()
    path.write_bytes(content[: cut % len(content)])
    with pytest.raises(StorageError, match=r"study\.jsonl:\d: "):
        portable.read_archive(path)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=30, deadline=None)
@given(place=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_a_flipped_bit_is_told_or_makes_no_difference(tmp_path_factory, form, place, bit):
    path = tmp_path_factory.mktemp("flip") / f"study.{form}"
    record = small()
    portable.write(record, path)
    content = bytearray(path.read_bytes())
    content[place % len(content)] ^= 1 << bit
    path.write_bytes(content)
    assert told(path) in (record, str(path))


def test_damage_is_told_with_its_line(tmp_path):
    path = tmp_path / "study.jsonl"
    portable.write(small(), path)
    path.write_bytes(path.read_bytes().replace(b'"rows":4', b'"rows":5'))
    with pytest.raises(StorageError, match=r"study\.jsonl:4: the line is damaged"):
        portable.read_archive(path)


def test_a_missing_line_is_told(tmp_path):
    path = tmp_path / "study.jsonl"
    portable.write(small(), path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:6], *lines[7:]]))
    with pytest.raises(StorageError, match="lines are missing"):
        portable.read_archive(path)


def test_a_file_of_a_newer_format_is_refused(tmp_path):
    path = tmp_path / "study.jsonl"
    portable.write(small(), path)
    first, _, rest = path.read_bytes().partition(b"\n")
    path.write_bytes(resealed(first.replace(b'"format":1', b'"format":2')) + rest)
    with pytest.raises(StorageError, match="reads up to 1"):
        portable.read_archive(path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("number", -1),
        ("number", True),
        ("told", 1.5),
        ("state", "finished"),
        ("design", {"rows": [1]}),
        ("design", None),
        ("metrics", {"chip.energy": "0.3"}),
        ("metrics", {"chip.energy": 10**400}),
        ("cost_s", None),
        ("worker", "me"),
        ("fault", {"kind": "crashed"}),
        ("fault", {"kind": "tired", "reason": ""}),
        ("measured", 1 << 63),
        ("surprise", 1),
    ],
)
def test_what_cannot_be_in_a_trial_is_refused_with_its_line(tmp_path, field, value):
    path = tmp_path / "study.jsonl"
    portable.write(small(), path)
    lines = path.read_bytes().splitlines(keepends=True)
    told = json.loads(lines[1])
    told["trial"][field] = value
    lines[1] = resealed(json.dumps(told, separators=(",", ":")).encode())
    path.write_bytes(b"".join(lines))
    with pytest.raises(StorageError, match=rf"study\.jsonl:2: .*{field}"):
        portable.read_archive(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"{}\n",
        b"PAR1",
        b"PAR1\x00\x00PAR1",
        b"[" * 10**6,
        b"\xff\xfe",
        b'{"study":1}\n',
    ],
)
def test_a_file_that_is_no_study_is_refused(tmp_path, content):
    path = tmp_path / "study"
    path.write_bytes(content)
    with pytest.raises(StorageError):
        portable.read_archive(path)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "9" * 5000])
def test_a_word_that_is_no_number_is_refused(tmp_path, word):
    path = tmp_path / "study.jsonl"
    portable.write(small(), path)
    content = path.read_bytes().splitlines(keepends=True)
    content[1] = resealed(content[1].replace(b'"told":0', b'"told":' + word.encode()))
    path.write_bytes(b"".join(content))
    with pytest.raises(StorageError, match=r"study\.jsonl:2"):
        portable.read_archive(path)


def test_the_trials_and_the_order_of_their_ends_must_agree(tmp_path):
    path = tmp_path / "study.jsonl"
    portable.write(replace(small(), finished_order=(2,)), path)
    with pytest.raises(StorageError, match=r"study\.jsonl:2: trial 0 is failed"):
        portable.read_archive(path)


def test_a_study_is_never_put_over_another():
    storage = MemoryStorage()
    storage.create("small", {})
    with pytest.raises(StudyError, match="--name"):
        restore(small(), storage)
    restore(small(), storage, name="other")
    assert storage.studies() == ["small", "other"]


def test_a_study_that_cannot_be_stored_whole_is_not_stored():
    record, storage = small(), MemoryStorage()
    endless = replace(record.trials[2], metrics={"chip.energy": float("inf")})
    with pytest.raises(StorageError, match="energy is inf"):
        restore(replace(record, trials=(*record.trials[:2], endless, record.trials[3])), storage)
    assert storage.studies() == []


@pytest.mark.parametrize("name", ["study.txt", "study", "folder/study.jsonl"])
def test_a_file_that_cannot_be_written_is_told(tmp_path, name):
    with pytest.raises(StorageError):
        portable.write(small(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_names_that_are_paths_or_markup_are_only_names(tmp_path):
    hostile = replace(small(), study="../../<script>\x00'; DROP TABLE dse_trials;--")
    portable.write(hostile, tmp_path / "study.parquet")
    storage = MemoryStorage()
    restore(portable.read_archive(tmp_path / "study.parquet"), storage)
    assert Record.of(storage, hostile.study) == hostile


def test_units_stand_in_a_parquet_files_fields(tmp_path):
    from pyarrow import parquet

    about = {"metrics": {"chip.energy": {"unit": "J"}}, "parameters": {"rows": {"unit": "1"}}}
    portable.write(replace(small(), about=about), tmp_path / "study.parquet")
    schema = parquet.read_schema(tmp_path / "study.parquet")
    assert schema.field("metrics.chip.energy").metadata[b"unit"] == b"J"
    assert schema.field("design.rows").metadata[b"unit"] == b"1"
    assert str(schema.field("design.rows").type) == "int64"
    assert str(schema.field("design.format").type) == "string"
