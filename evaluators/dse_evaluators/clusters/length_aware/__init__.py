"""Batches of texts whose lengths are guessed before they are written."""
