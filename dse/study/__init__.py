"""Study engine: the ask-evaluate loop, drivers that share a study, replay, migration, import."""
