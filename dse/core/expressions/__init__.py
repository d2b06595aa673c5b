"""Language of formulas and rules: syntax tree, parser, printer and vectorized evaluation."""
