"""Domains of parameters, and what narrows them."""
