"""Analysis of recorded trials: effects, importance, indicators and comparison of studies."""
