"""The legal set of a space: found, counted, drawn from and moved in."""
