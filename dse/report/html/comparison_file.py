"""File content of a comparison of studies, as HTML or JSON by the file's extension."""

from __future__ import annotations

import json
from pathlib import Path

from dse.analysis.comparison import ComparisonResult
from dse.errors import StudyError
from dse.report.html.comparison_page import comparison_html
from dse.report.json.comparison import comparison_json


def comparison_text(comparison: ComparisonResult, file: Path) -> str:
    """Return the file content: an HTML page for ``.html``, a JSON text for ``.json``.

    Raises:
        StudyError: the file has another extension.
    """
    match file.suffix.lower():
        case ".html" | ".htm":
            return comparison_html(comparison)
        case ".json":
            return json.dumps(comparison_json(comparison), indent=2, allow_nan=False) + "\n"
        case ending:
            problem = f"a comparison cannot be written as {ending or 'a file without an ending'}"
            raise StudyError(problem, hint="name a file .html or .json")
