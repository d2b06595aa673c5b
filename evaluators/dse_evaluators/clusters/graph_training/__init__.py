"""Training of graph networks on many devices: graphs, their partitions, and pipelines of layers."""
