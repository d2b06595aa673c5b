"""Evaluators for any command, function, table or formula."""
