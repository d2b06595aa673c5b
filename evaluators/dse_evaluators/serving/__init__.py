"""Programs that serve models, or share the cores of this machine, measured on it."""
