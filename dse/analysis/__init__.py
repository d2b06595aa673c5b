"""What a record says: how the hypervolume grew, and how studies of one question compare."""
