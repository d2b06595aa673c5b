"""Command-line interface: the ``dse`` command."""
