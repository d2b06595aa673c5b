"""Notebook views of our objects: HTML without scripts, drawings as SVG within it.

Each module is a pure function from values to text. Nothing that is shown is trusted: names of
studies, metrics and designs are escaped, and cut where they are too long to be read.
"""
