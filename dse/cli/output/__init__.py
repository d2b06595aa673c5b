"""Output of the commands: text, JSON, files and progress displays."""
