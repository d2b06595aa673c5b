"""How studies are remembered."""
