"""Recommender embeddings trained as a product of two tables and stored as one table."""
