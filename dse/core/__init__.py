"""Core data types and algorithms: spaces, designs, trials, objectives and Pareto fronts."""
