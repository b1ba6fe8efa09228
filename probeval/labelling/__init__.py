"""Labels by a language model: prompts, a client of the chat protocol, a cache of answers, a server for tests."""

from probeval.labelling.cache import Answer, AnswerCache
from probeval.labelling.client import Client, Reply
from probeval.labelling.labeller import Asked, Given, Labeller, Prices, Tokens, WorkOnPairs, day, estimate_tokens
from probeval.labelling.prompt import PROMPTS, Prompt, load_prompt
from probeval.labelling.server import Behaviour, LoopbackServer

__all__ = [
    "PROMPTS",
    "Answer",
    "AnswerCache",
    "Asked",
    "Behaviour",
    "Client",
    "Given",
    "Labeller",
    "LoopbackServer",
    "Prices",
    "Prompt",
    "Reply",
    "Tokens",
    "WorkOnPairs",
    "day",
    "estimate_tokens",
    "load_prompt",
]
