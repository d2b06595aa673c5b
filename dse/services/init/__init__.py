"""``dse init``: a first study from a few questions."""
