"""Networks on crossbars: noisy conductances, converters and noise-aware training."""
