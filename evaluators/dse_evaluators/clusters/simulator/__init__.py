"""Discrete-event simulation of a language-model server, iteration by iteration."""
