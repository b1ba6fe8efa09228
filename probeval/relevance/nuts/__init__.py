"""The hierarchical model by NUTS (PyMC): the second route to its posterior, with and without labels."""

__all__: list[str] = []
