"""Cost models of many devices that run one model: communication, training and serving."""
