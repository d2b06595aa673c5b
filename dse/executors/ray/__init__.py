"""Work done on the machines of a Ray cluster."""
