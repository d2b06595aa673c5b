"""Spaces from texts: ``read`` gives the space, ``told`` what its mistakes are answered with."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dse.core.space import DesignSpace
from dse.errors import SpecError, SpecErrors
from dse.schema.space.space_loader import space_of
from dse.schema.yaml.files import Files


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., DesignSpace]:
    def space(text: str, **others: str) -> DesignSpace:
        for name, content in others.items():
            stem, _, kind = name.rpartition("_")
            file = f"{stem}.csv" if kind == "csv" else f"{name}.yaml"
            (tmp_path / file).write_text(content)
        path = tmp_path / "main.yaml"
        path.write_text(text)
        return space_of(path, Files())

    return space


@pytest.fixture
def told(read: Callable[..., DesignSpace]) -> Callable[..., str]:
    def mistakes(text: str, **others: str) -> str:
        with pytest.raises((SpecError, SpecErrors)) as caught:
            read(text, **others)
        error = caught.value
        errors = error.errors if isinstance(error, SpecErrors) else (error,)
        return "\n".join(map(str, errors))

    return mistakes
