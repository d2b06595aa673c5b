"""Graph convolutions on the user's graph or on drawn ones, timed on this machine."""
