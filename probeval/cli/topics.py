"""``probeval campaign topics``: who judges which topics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from probeval.cli.commands import Output
from probeval.cli.stores import OwnersPlace
from probeval.data.tables import cell_text, column, ids, read_table
from probeval.errors import ProbevalError
from probeval.records import About

if TYPE_CHECKING:
    from probeval.campaign import TopicList

__all__ = ["topics"]


def topics(
    place: OwnersPlace,
    output: Output,
    file: Annotated[
        Path | None,
        About(
            "A table of query and assessor; an empty assessor leaves the topic to all.", metavar="[FILE]", argument=True
        ),
    ] = None,
    even: Annotated[bool, About("Deal the topics evenly to each --assessor; topics they own stay theirs.")] = False,
    assessor: Annotated[
        list[str] | None,
        About("An assessor to deal topics to.", metavar="NAME", kind=str, many=True),
    ] = None,
) -> TopicList:
    """Show the topics, or give them to assessors: as a file says, or evenly.

    Example: probeval campaign topics mine.db --even --assessor ann --assessor bob
    """
    from probeval.selection.topics import deal

    if file is not None and even:
        raise ProbevalError("Give a FILE of queries and assessors, or --even, not both.")
    if even != bool(assessor):
        raise ProbevalError("Topics are dealt with --even to each --assessor NAME: give both.")
    with place.open(read_only=file is None and not even) as opened:
        if file is not None:
            opened.assign_topics(place.by, _read_owners(file))
        elif even:
            sizes = {topic.query: topic.pool for topic in opened.topics().queries}
            opened.assign_topics(place.by, deal(sizes, assessor or [], opened.state.owners))
        found = opened.topics()
    if (file is not None or even) and found.topics != "owned":
        output.hints.append(
            f"The campaign gives topics {found.topics}, so owners have no effect. "
            "Let them: campaign change --topics owned."
        )
    return found


def _read_owners(path: Path) -> dict[str, str]:
    table = read_table(path)
    queries, owners = column(table, "query", path=path), column(table, "assessor", path=path)
    assert queries is not None
    assert owners is not None
    return dict(zip(ids(queries, "query", path=path), map(cell_text, owners), strict=True))
