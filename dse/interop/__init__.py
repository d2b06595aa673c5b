"""Import and export of studies, spaces and trials: archive files and formats of other tools."""
