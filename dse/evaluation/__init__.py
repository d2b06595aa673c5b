"""How a design is evaluated: the pipeline, its checks, reports on the way, and retries."""
