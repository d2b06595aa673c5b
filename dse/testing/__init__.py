"""For plug-in authors: contracts, Hypothesis strategies, problems with known fronts."""
