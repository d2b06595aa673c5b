"""One deed in a process of its own: python deed.py MODULE FUNCTION ARGUMENTS."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path


def main() -> None:
    """Do it and print what took how long, a line for each part."""
    module, function, folder, *words = sys.argv[1:]
    deed = getattr(importlib.import_module(module), function)
    told = [int(word) if word.isdigit() else word for word in words]
    for part in deed(Path(folder), *told):
        print(json.dumps(part), flush=True)


if __name__ == "__main__":
    main()
