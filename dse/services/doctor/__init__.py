"""``dse doctor``: the installation, files and storages checked."""
