"""Entry point of the ``dse`` command and of ``python -m dse``."""

from __future__ import annotations

import signal
import sys

from dse.cli.interrupts import hear_again, leave


def main() -> None:
    """Run the command line; Ctrl-C during startup ends it with one line and no traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave)
    sys.unraisablehook = hear_again
    from dse.cli.app import main as command  # slow import, 0.3 s: after the handler
    from dse.system.broken_pipes import outlive_readers

    outlive_readers()
    command()


if __name__ == "__main__":
    main()
