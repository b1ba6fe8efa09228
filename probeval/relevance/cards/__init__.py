"""Fitted models as data: cards, where they are kept, and which one fits a campaign."""

__all__: list[str] = []
