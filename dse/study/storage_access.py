"""Access to the storages that keep studies: by URL, and by a study's name."""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dse.core.trial import History
from dse.errors import StudyError, nearest
from dse.protocols import Storage
from dse.registry import make
from dse.schema.models import NAME
from dse.schema.study.plugin_checks import check_storage
from dse.system.credentials import mask_url
from dse.system.terminal_text import is_visible

DEFAULT_STORAGE = "sqlite:///dse.db"


def check_name(name: str) -> None:
    """Raise StudyError unless a new study may have this name.

    Names are checked because imported files may contain any text.

    Raises:
        StudyError: the name has characters other than letters, digits, '_', '-', '.' and spaces.
    """
    if not re.fullmatch(NAME, name) or not is_visible(name):
        hint = "letters, digits, '_', '-', '.', spaces: --name NAME"
        raise StudyError(f"{name[:60]!r} is no name", hint=hint)


def unknown_study(name: str, kept: Iterable[str], url: str = "") -> StudyError:
    """Return the error for a study that is not in a storage.

    Args:
        name: the name that was asked for.
        kept: the names of the storage's studies.
        url: the storage's URL, if known.
    """
    near = nearest(name, kept) or "no study is kept there"
    return StudyError(
        f"there is no study {name!r}{f' in {mask_url(url)}' if url else ''}",
        hint=f"{near}; other storages: --storage URL",
    )


def opened_storage(url: str | Storage, *, begins: bool = False) -> Storage:
    """Return the storage at a URL, whose scheme selects the plug-in.

    A missing SQLite file is treated as an empty storage; the file is created only if a study
    ``begins``.

    Raises:
        PluginError: no storage plug-in has that scheme, or the text is a file name.
        StorageError: the storage cannot be opened.
    """
    if not isinstance(url, str | Path):
        return url
    check_storage(str(url))
    url = str(url)
    scheme = url.partition(":")[0].partition("+")[0]
    file = url.partition("///")[2].partition("?")[0]
    named = scheme == "sqlite" and file not in ("", ":memory:")
    if named and not begins and not os.path.exists(file):  # noqa: PTH110 - no error of long names
        scheme, url = "memory", "memory://"
    made: Storage = make("storages", scheme, url)
    return made


def create_study(
    storage: Storage, name: str, specification: Mapping[str, Any], history: History
) -> Mapping[str, Any]:
    """Create a study, unless another process creates it first; return the stored specification.

    Args:
        storage: the storage.
        name: the study's name.
        specification: what the study is, as stored.
        history: the trials and events that it begins with.
    """
    try:
        storage.create(name, specification, history)
    except StudyError:
        others = storage.spec(name)
        if others is None:
            raise
        return others
    return specification
