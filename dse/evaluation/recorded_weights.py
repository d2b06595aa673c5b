"""Weights that machines trained by themselves, as recorded with the drivers of a study."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from dse.core.trial import Driver
from dse.errors import DseError, StudyError
from dse.protocols import Evaluator, Storage, weights_trained_for

_PREFIX = "weights of "
"""Start of the keys in the provenance of a driver; the name of the model follows."""


def hash_weights(evaluators: Iterable[Evaluator]) -> dict[str, str]:
    """Return the hashes of the model weights that this machine trained, for the record.

    A model that cannot be trained here is left out: its evaluation fails with the reason.

    Args:
        evaluators: the evaluators of a study.
    """
    found: dict[str, str] = {}
    for one in evaluators:
        with suppress(DseError):
            trained = weights_trained_for(one)
            found |= {f"{_PREFIX}{name}": text for name, text in trained.items()}
    return found


def read_weights(drivers: Iterable[Driver], spec: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the hashes of the weights with which a study began, by the name of the model.

    Args:
        drivers: the drivers of the study, the earliest first.
        spec: the record of the study, which names the weights of merged studies.
    """
    found: dict[str, str] = dict((spec or {}).get("carried", {}).get("weights", {}))
    for driver in drivers:
        for key, text in driver.provenance.items():
            if key.startswith(_PREFIX):
                found.setdefault(key.removeprefix(_PREFIX), text)
    return found


def weights_of_study(storage: Storage, name: str) -> dict[str, str]:
    """Return the hashes of the weights with which a stored study began, by model."""
    drivers = sorted(storage.drivers(name), key=lambda one: one.id)
    return read_weights(drivers, storage.spec(name))


def check_weights(
    study: str, began: Mapping[str, str], here: Mapping[str, str], *, place: str
) -> None:
    """Check that models have the weights with which a study began.

    Args:
        study: the study's name.
        began: the hashes of the weights with which the study began, by the name of the model.
        here: the hashes to compare with them, by the name of the model.
        place: where the weights to compare are, for the message.

    Raises:
        StudyError: the hashes of a model differ.
    """
    for name in sorted(began.keys() & here.keys()):
        if began[name] != here[name]:
            raise StudyError(
                f"{name} has other weights {place} than in the study {study!r}: it was trained "
                f"on another machine or with another PyTorch ({here[name]} and {began[name]})",
                hint=f"copy {name}-*.npz of the first machine's cache folder ($DSE_CACHE, else "
                "~/.cache/dse-engine), or begin a study of another name",
            )
