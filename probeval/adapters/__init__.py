"""Adapters to other tools: each imports its tool when it is used."""

__all__: list[str] = []
