"""Python's way in: ``from dse import Space, Study, Metric, evaluator``.

A study that is written in Python becomes the same documents that YAML would hold: it is checked by
the same rules, kept in the same record, and read by the same commands.
"""
