"""Test-time compute: accuracy and cost of repeated, verified and longer answers to a query."""
