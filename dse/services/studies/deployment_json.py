"""Deployed trial as JSON."""

from __future__ import annotations

from dse.report.schemas.pages import DeployedTrial
from dse.services.studies.deploy import Deployment


def deployment_json(done: Deployment) -> DeployedTrial:
    """Return a deployment's files and their bytes by purpose as a JSON object."""
    return {
        "study": done.study,
        "trial": done.trial.number,
        "target": done.target,
        "files": [str(file) for file in done.files],
        "sizes": [
            {
                "purpose": row.purpose,
                "study_bytes": row.study_bytes,
                "file_bytes": row.file_bytes,
            }
            for row in done.sizes
        ],
        "notes": list(done.notes),
        "flags": dict(done.flags),
        "missing": dict(done.missing),
    }
