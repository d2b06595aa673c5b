"""JSON schemas of the output of commands with ``--format json``; see ``dse.cli.json_schemas``."""
