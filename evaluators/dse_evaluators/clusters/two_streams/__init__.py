"""MAD-Max model of a distributed iteration: one compute stream and one communication stream."""
