"""Observers: sources of labels that measure the latent relevance of pairs, each with its worth and its biases."""

__all__: list[str] = []
