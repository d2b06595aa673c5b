"""Selection of the runs to compare, by study names, files, wildcard patterns and named groups."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from glob import glob
from pathlib import Path
from typing import NamedTuple

from dse.analysis.run_groups import RunGroup, alone, by_kind
from dse.analysis.runs import Run, is_swept
from dse.errors import StudyError
from dse.interop.archive.archive import ENDINGS, read_archive
from dse.protocols import Storage
from dse.schema.history.recorded_specification import kept_plan
from dse.schema.study.measured_baselines import settle_baselines
from dse.services.studies.read import stored_runs
from dse.study.storage_access import DEFAULT_STORAGE, opened_storage, unknown_study

_PATTERN = re.compile(r"[*?\[]")


def gather_groups(words: Sequence[str], storage: str | Storage | None = None) -> list[RunGroup]:
    """Return the groups of runs that the arguments select, in order; each study is read once.

    ``study`` and ``file.jsonl`` select a single run. ``pattern*`` selects all matching studies and
    groups those that differ only in their seed. ``name=pattern*`` puts all matches in one group.

    Raises:
        StudyError: an argument matches nothing, or two groups have the same name.
    """
    opened = opened_storage(storage or DEFAULT_STORAGE)
    url = storage if isinstance(storage, str) else "" if storage else DEFAULT_STORAGE
    meant = [_Meant.of(word, opened.studies(), url) for word in words]
    names = list(dict.fromkeys(name for one in meant for name in one.found))
    stored = [name for name in names if not name.endswith(ENDINGS)]
    runs = {run.name: run for run in stored_runs(stored, opened, url)}
    runs |= {name: _load_run_file(Path(name)) for name in names if name.endswith(ENDINGS)}
    groups = [group for one in meant for group in one.groups([runs[name] for name in one.found])]
    check_distinct(groups)
    return groups


def check_distinct(groups: Sequence[RunGroup]) -> None:
    """Raise StudyError unless all groups have distinct names."""
    called = [group.name for group in groups]
    twice = next((name for name in called if called.count(name) > 1), None)
    if twice is not None:
        raise StudyError(f"{twice!r} is there twice", hint="name the groups: 'one=study-*'")


class _Meant(NamedTuple):
    """Parsed command-line argument: the studies or files that it matches, and the group's name.

    The name is empty for an argument without ``name=``.
    """

    name: str
    pattern: str
    found: Sequence[str]

    @staticmethod
    def of(word: str, names: Sequence[str], url: str) -> _Meant:
        name, named, pattern = word.partition("=")
        name, pattern = (name.strip(), pattern.strip()) if named else ("", word)
        if pattern.endswith(ENDINGS):
            found = sorted(glob(pattern)) if _PATTERN.search(pattern) else [pattern]  # noqa: PTH207 - the pattern may be absolute
        else:
            found = [known for known in names if fnmatchcase(known, pattern)]
        if not found:
            raise unknown_study(pattern, names, url)
        return _Meant(name, pattern, found)

    def groups(self, runs: Sequence[Run]) -> list[RunGroup]:
        """Return the runs that this argument selected, divided into the groups to be compared.

        A named argument makes one group, a pattern a group of runs that differ only in their seed.
        """
        if self.name:
            return [RunGroup(self.name, tuple(runs))]
        return by_kind(runs) if _PATTERN.search(self.pattern) else alone(runs)


def _load_run_file(path: Path) -> Run:
    record = read_archive(path)
    plan = settle_baselines(kept_plan(record.spec), record.trials)
    price, swept = plan.budget.price_per_s, is_swept(record.events)
    return Run.of(path.stem, plan.problem, record.finished, price, swept=swept)
