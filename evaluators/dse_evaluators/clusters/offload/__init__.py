"""Training with what does not fit on a GPU kept in its host's memory or on its disks."""
