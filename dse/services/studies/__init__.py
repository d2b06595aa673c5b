"""Application services for stored studies."""
