"""Dies, nodes, voltages and memories: what any chip is made of."""
