"""A server of a language model, played iteration by iteration."""
