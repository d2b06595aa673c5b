"""Parts of Bayesian optimizers: surrogates, acquisition, stopping."""
