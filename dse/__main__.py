"""``python -m dse`` is ``dse``."""

from __future__ import annotations

import signal
import sys

from dse.cli.interrupts import hear_again, leave


def main() -> None:
    """Run the command; Ctrl-C ends it with a line from its first moment on."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave)
    sys.unraisablehook = hear_again
    from dse.cli.app import main as command  # it takes a third of a second
    from dse.system.broken_pipes import outlive_readers

    outlive_readers()
    command()


if __name__ == "__main__":
    main()
