"""From the study file to a plan."""
