"""Analysis of records: hypervolume growth, and comparison of studies of one problem."""
