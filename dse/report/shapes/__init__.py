"""The shapes of what commands print with ``--format json``; ``dse.cli.published`` has them all."""
