"""Timing of code on this machine: repeats, intervals, interference, energy and clocks."""
