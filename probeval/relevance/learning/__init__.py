"""Learning from past campaigns, and evaluation of the resulting models."""

__all__: list[str] = []
