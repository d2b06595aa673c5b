"""The legal set of a space: counted, drawn from, and moved in."""
