"""``probeval next``: the pairs to judge next."""

from __future__ import annotations

from typing import Annotated

from probeval.api.evaluate import NextInputs
from probeval.api.evaluation import NextPairs
from probeval.api.settings import QueryTexts
from probeval.cli.commands import Output, verb
from probeval.cli.options import OutFolder, ToolName
from probeval.cli.output import check_tool
from probeval.data import read_texts
from probeval.records import About
from probeval.selection import Fairness, fairness

__all__ = ["next_pairs"]


@verb("Choose the pairs to judge next.", name="next")
def next_pairs(
    given: NextInputs,
    output: Output,
    fair: Annotated[
        bool, About("Show instead how much of each team's documents was judged.", option="--fairness")
    ] = False,
    tool: ToolName = None,
    out: OutFolder = None,
    queries: QueryTexts = None,
) -> NextPairs | Fairness:
    """Choose the pairs of query and document to judge next, given the judgments so far; show whether to stop.

    Example: probeval next runs/ --qrels judged.txt --metric nDCG@10 -n 20
    """
    messages = output.messages
    folder = check_tool(tool, out)
    texts = None if queries is None else read_texts(queries, "query")
    found = messages.warned(given.run)
    if fair:
        for sentence in messages.warned(found.status):
            messages.say(sentence)
        return fairness(found.state.estimate, reporter=messages)
    messages.warned(found.status)
    if tool is not None and folder is not None and found.pairs:
        files = found.hand_out(tool, folder, queries=texts, docs=given.docs)
        messages.say(f"For {tool}: {', '.join(map(str, files))}.")
    return found
