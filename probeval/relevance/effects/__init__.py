"""What moves the latent relevance of a pair: the effects of the hierarchical model, and their priors."""

__all__: list[str] = []
