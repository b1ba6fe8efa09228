"""How the hierarchical model is computed: its likelihood, and two inferences of one posterior."""

__all__: list[str] = []
