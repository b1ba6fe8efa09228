"""What past campaigns teach, and how good the resulting models are."""

__all__: list[str] = []
