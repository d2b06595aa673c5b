"""Families of transformers that are read from ``config.json`` and safetensors."""
