"""Live view: a small web application over any storage."""
