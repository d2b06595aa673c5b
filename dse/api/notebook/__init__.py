"""Notebook views of the Python API's objects: HTML without scripts, plots as inline SVG.

The modules map values to text. Displayed names of studies, metrics and designs are untrusted: they
are escaped, and truncated if too long.
"""
