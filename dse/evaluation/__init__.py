"""Evaluation of designs: the pipeline, its checks, intermediate reports, and retries."""
