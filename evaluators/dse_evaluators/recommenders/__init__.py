"""Evaluators of recommenders: where their embedding tables are, and what a query then takes."""
