"""Reading, validation and writing of YAML files."""
