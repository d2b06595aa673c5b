"""Cost models of test-time compute: longer or repeated answers of a language model."""
