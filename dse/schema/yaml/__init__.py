"""YAML files read, validated and written."""
