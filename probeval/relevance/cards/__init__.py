"""Fitted models as data: model cards, their storage, and the choice of one for a campaign."""

__all__: list[str] = []
