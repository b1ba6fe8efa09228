"""A process that judges: ``writer.py STORE ASSESSOR N`` prints each request once it is acknowledged."""

from __future__ import annotations

import sys

from probeval.campaign import Campaign


def main(store: str, assessor: str, n: int) -> None:
    with Campaign.open(store) as campaign:
        tasks, start = campaign.next(assessor), campaign.state.number
        for i in range(n):
            # Where nothing is left to judge, judge again: the log grows all the same.
            asked = tasks[0].question if tasks else campaign.pool.label(i % len(campaign.pool))
            token = f"{assessor}-{start}-{i}"
            _, tasks = campaign.answer_and_next(assessor, asked, grade=i % 3, token=token)
            sys.stdout.write(f"{token}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
