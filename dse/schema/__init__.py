"""From YAML to checked models to core values."""
