"""Relevance models, as users meet them."""

__all__: list[str] = []
