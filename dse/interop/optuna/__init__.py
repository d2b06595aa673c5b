"""Import and export of spaces and studies in Optuna's formats."""
