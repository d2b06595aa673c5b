"""Costs of letting a language model think longer or more often."""
