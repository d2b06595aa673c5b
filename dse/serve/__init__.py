"""Live view: web application that shows, starts and pauses the studies of a storage."""
