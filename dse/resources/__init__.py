"""Installation of external resources of evaluators: pinned data wheels and environments."""
