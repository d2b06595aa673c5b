"""The ``dse space`` commands."""
