"""Disturbances of large training jobs: varying step times, failures and stragglers."""
