"""A first study from a few answers: its space, its question and an evaluator that runs."""
