"""Generation of a first study from a few answers, for ``dse init``."""
