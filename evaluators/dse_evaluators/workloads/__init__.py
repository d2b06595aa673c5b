"""Models as layers with shapes, and real ones that can be run."""
