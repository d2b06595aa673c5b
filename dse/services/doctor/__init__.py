"""Checks behind ``dse doctor``: the installation, study files and storages."""
