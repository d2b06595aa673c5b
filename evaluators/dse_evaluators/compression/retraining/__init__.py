"""Compression with retraining: methods that prune or factor a network, and train the rest."""
