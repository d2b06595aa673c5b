"""Commands of ``dse space``."""
