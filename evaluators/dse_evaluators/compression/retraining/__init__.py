"""Compression with retraining: methods that reduce a network and train what remains."""
