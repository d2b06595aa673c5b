"""Evaluators of faults in memories: bit flips in the stored codes of a model's weights."""
