"""Answers of assessors about documents in pairs, and their numbers, as measurements of the latent relevance."""

__all__: list[str] = []
