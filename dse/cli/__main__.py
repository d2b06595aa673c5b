"""Entry point of ``python -m dse.cli``, which is the same as ``dse``."""

from __future__ import annotations

from dse.cli.app import main

if __name__ == "__main__":
    main()
