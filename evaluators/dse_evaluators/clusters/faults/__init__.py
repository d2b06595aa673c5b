"""Disturbances at scale: time that varies, devices that fail or lag."""
