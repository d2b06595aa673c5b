"""Test kit for plug-in authors: contract tests, Hypothesis strategies, benchmark problems."""
