"""Python interface: ``from dse import Space, Study, Metric, evaluator``.

A study defined in Python becomes the same document that a YAML study file would hold: it is
validated by the same rules, stored in the same record, and read by the same commands.
"""
