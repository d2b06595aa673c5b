"""Models, data and environments that evaluators need beside this program."""
