"""Protocol loop of a worker: ``python request_loop.py FILE`` answers by FILE's functions.

The file defines ``prepared(options)``, which returns a function ``measured(design)``; this returns
the metrics by name, or ``{"infeasible": "why"}``. It may define ``versions()``, which returns the
versions of the packages it uses by name. An exception in ``measured`` fails only that design. Needs
only the standard library of Python 3.9 or later.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

Measured = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def main() -> None:
    """Read requests from stdin and write the responses, until stdin is closed."""
    file = Path(sys.argv[1])
    asked, channel = _alone()
    sys.path[0] = str(file.parent)
    measured: Measured | None = None
    for line in asked:
        request = json.loads(line)
        number = {"id": request["id"]} if "id" in request else {}
        try:
            if measured is None:
                module = runpy.run_path(str(file), run_name=file.stem)
                measured = module["prepared"](request["options"])
                reply = json.dumps({"ready": module.get("versions", dict)()})
            else:
                reply = json.dumps({**number, **_of(measured(request["design"]))})
        except Exception as error:  # noqa: BLE001 - a tool may raise anything
            traceback.print_exc()
            reply = json.dumps({**number, "failed": f"{type(error).__name__}: {error}"})
        channel.write(reply + "\n")
        channel.flush()


def _alone() -> tuple[TextIO, TextIO]:
    """Return file objects of the original stdin and stdout, which only the protocol uses.

    The process's own stdout is redirected to stderr, so that prints of the model do no harm.
    """
    asked = os.fdopen(os.dup(0), "r", encoding="utf-8")
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return asked, channel


def _of(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    return answer if "infeasible" in answer else {"metrics": answer}


if __name__ == "__main__":
    main()
