"""Application services for a space without a study."""
