"""Studies, spaces and trials in the formats of other tools, and as files."""
