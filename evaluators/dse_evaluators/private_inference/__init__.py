"""Private inference: homomorphic encryption, lookup tables, private retrieval, aggregation."""
