"""Who works on a study, and what each of them knows of it."""
