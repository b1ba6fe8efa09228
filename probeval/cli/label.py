"""``probeval label``: labels by a language model."""

from __future__ import annotations

from probeval.api.label import LabelInputs, LabelsMade
from probeval.cli.commands import Output, verb

__all__ = ["label"]


@verb("Label pairs by a language model, on a server of your choice.")
def label(given: LabelInputs, output: Output) -> LabelsMade:
    """Ask a language model for labels of all pairs of runs or of a campaign, or of those that matter most.

    Any server of the OpenAI chat protocol: hosted, vLLM, Ollama, llama.cpp. Answers are kept and not asked for again.

    Example: probeval label runs/ --base-url http://127.0.0.1:8000/v1 --model qwen3 --queries q.tsv --docs d.jsonl
    """
    return output.messages.warned(given.run)
