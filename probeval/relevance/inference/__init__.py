"""Inference of the hierarchical model: its likelihood, and two methods for the same posterior."""

__all__: list[str] = []
