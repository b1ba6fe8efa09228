"""Labels by a language model: prompts, a client of the chat protocol, a cache of answers, a server for tests."""

from probeval.labelling.cache import AnswerCache, KeptAnswer
from probeval.labelling.client import Client, Reply
from probeval.labelling.labeller import Asked, Given, Labeller, TokenPrices, Tokens, WorkOnPairs, day, estimate_tokens
from probeval.labelling.prompt import PROMPTS, Prompt, load_prompt
from probeval.labelling.server import Behaviour, LoopbackServer

__all__ = [
    "PROMPTS",
    "AnswerCache",
    "Asked",
    "Behaviour",
    "Client",
    "Given",
    "KeptAnswer",
    "Labeller",
    "LoopbackServer",
    "Prompt",
    "Reply",
    "TokenPrices",
    "Tokens",
    "WorkOnPairs",
    "day",
    "estimate_tokens",
    "load_prompt",
]
