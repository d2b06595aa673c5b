"""Evaluators of network architectures: tables of trained networks, supernets, blocks, scaling."""
