"""``dse compress``: compress a folder of safetensors layer by layer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dse.cli.options import JsonOrTableOption, OutputFormat, say, show, show_json

if TYPE_CHECKING:
    from dse.report.schemas.pages import CompressedFolder


def compress(
    folder: Annotated[Path, typer.Argument(help="Folder with config.json and safetensors.")],
    *,
    recipe: Annotated[
        str,
        typer.Option(
            help="Operators of the blocks' layers: 'format int4:group=128' or 'gptq ...'.",
            show_default=False,
        ),
    ],
    target: Annotated[
        Path, typer.Option("--output", "-o", help="Folder to write.", show_default=False)
    ],
    others: Annotated[str, typer.Option(help="Recipe of embeddings and of the head.")] = "keep",
    data: Annotated[
        Path | None,
        typer.Option(help="File of token ids that calibrate the layers.", show_default=False),
    ] = None,
    rotation: Annotated[
        str, typer.Option(help="'hadamard' folds a random rotation into a decoder's weights.")
    ] = "none",
    sequential: Annotated[
        bool, typer.Option("--sequential", help="Calibrate by the outputs of compressed blocks.")
    ] = False,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Compress a model's folder layer by layer, with bounded memory.

    The result is a folder of safetensors shards in the layout of compressed-tensors.

    Example: dse compress llama --recipe "format int4:group=128" -o llama-int4
    """
    from dse.services.studies.compress_folder import compress as compress_model

    done = compress_model(
        folder,
        target,
        recipe=recipe,
        others=others,
        data=data,
        rotation=rotation,
        sequential=sequential,
    )
    if output is OutputFormat.JSON:
        printed: CompressedFolder = {
            "folder": str(target),
            "recipe": recipe,
            "files": [str(file) for file in done.files],
            "tensors": [
                {"purpose": purpose, "bytes": count} for purpose, count in done.tensor_bytes.items()
            ],
        }
        show_json(printed)
        return
    for purpose, count in done.tensor_bytes.items():
        show(f"{purpose:<12} {count:>16,} bytes")
    for file in done.files:
        say(f"wrote {file}")
