"""The shapes of what commands print with ``--format json``; see ``dse.cli.json_schemas``."""
