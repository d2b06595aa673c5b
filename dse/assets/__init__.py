"""Models and data that ship in other packages: pinned, checked, kept in a cache, never imported."""
