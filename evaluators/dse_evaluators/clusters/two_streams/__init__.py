"""An iteration as two streams, one that computes and one that communicates: the model MAD-Max."""
