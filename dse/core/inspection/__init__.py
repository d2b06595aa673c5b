"""Inspection of spaces: effects of rules, explanations of illegal designs, diffs, fingerprints."""
