"""What a driver says of where it ran."""

import subprocess
from pathlib import Path

import pytest

from dse.evaluation.provenance import git_state, provenance


def git(folder: Path, *words: str) -> str:
    said = subprocess.run(
        ["git", "-C", folder, "-c", "user.name=n", "-c", "user.email=e@x", *words],
        capture_output=True,
        text=True,
        check=True,
    )
    return said.stdout.strip()


@pytest.fixture
def repository(tmp_path) -> Path:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "study.yaml").write_text("study: s\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "first")
    return tmp_path


def test_the_commit_is_told(repository):
    assert git_state(repository) == git(repository, "rev-parse", "HEAD")


def test_a_file_that_differs_from_the_commit_is_told(repository):
    (repository / "study.yaml").write_text("study: t\n")
    assert git_state(repository) == git(repository, "rev-parse", "HEAD") + ", changed"


def test_only_the_studys_own_folder_counts(repository):
    (repository / "elsewhere.txt").write_text("x")
    (repository / "studies").mkdir()
    assert git_state(repository / "studies") == git(repository, "rev-parse", "HEAD")


def test_a_program_that_the_repository_names_is_not_run(repository):
    trace = repository / ".git" / "trace"
    script = repository / ".git" / "monitor"
    script.write_text(f"#!/bin/sh\ntouch {trace}\n")
    script.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(script))
    git_state(repository)
    assert not trace.exists()


def test_where_there_is_no_repository_nothing_is_told(tmp_path):
    assert git_state(tmp_path) == ""
    assert "git" not in provenance(tmp_path, {})


def test_other_evaluators_have_another_fingerprint(tmp_path):
    one, other = (provenance(tmp_path, {"chip": {"version": v}})["evaluators"] for v in "12")
    assert one != other
