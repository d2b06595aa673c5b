"""Import and export of spaces in ConfigSpace's JSON format."""
