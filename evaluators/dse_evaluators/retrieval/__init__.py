"""Evaluators of retrieval: indexes of vectors, measured on this machine."""
