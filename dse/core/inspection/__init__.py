"""Spaces explained: what each rule removes, and why a design is illegal."""
