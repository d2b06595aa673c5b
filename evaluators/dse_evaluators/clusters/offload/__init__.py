"""Training on one GPU with data offloaded to host memory or disks."""
