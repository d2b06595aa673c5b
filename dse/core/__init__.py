"""The nouns: frozen values that need numpy and nothing else."""
