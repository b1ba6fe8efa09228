"""Guesses of tokens against a real server, as an attack would send them: by forms, by cookies, from many addresses."""

from __future__ import annotations

import http.client
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from urllib.parse import urlencode, urlsplit

import pytest

from probeval.campaign import Campaign
from tests.web.served import Judge, Served


def _guess(server: Served, token: str, *, by: str, source: str) -> int:
    """The status of a response to a token, in the form or in the cookie."""
    with closing(http.client.HTTPConnection(server.host, timeout=30, source_address=(source, 0))) as client:
        if by == "form":
            kind = "application/x-www-form-urlencoded"
            client.request("POST", "/login", urlencode({"token": token}), {"Origin": server.url, "Content-Type": kind})
        else:
            client.request("GET", "/progress", headers={"Cookie": f"probeval-{urlsplit(server.url).port}={token}"})
        return client.getresponse().status


@pytest.mark.slow
def test_guesses_over_the_wire(campaign: Campaign, serve: Callable[..., Served]):
    """Many guesses from one address, then one from each of many: about 10 are looked up, and 100 of all together."""
    tokens = {who: campaign.people.invite("eve", who)[1] for who in ("ann", "bob")}
    server = serve(campaign.address[0])
    with closing(Judge(server.url, tokens["ann"])) as ann:  # from 127.0.0.1, before anyone guesses
        ann.look()
        began = time.monotonic()
        same = Counter(
            _guess(server, f"guess-{i}", by=("form", "cookie")[i % 2], source="127.0.0.2") for i in range(100)
        )
        right = [_guess(server, tokens["bob"], by=by, source="127.0.0.2") for by in ("form", "cookie")]
        passed = time.monotonic() - began
        assert same[401] <= 10 + passed / 10 + 1
        assert same[401] + same[429] == 100
        assert right == [429, 429]  # the right one waits too, so that it cannot be told from a wrong one
        assert _guess(server, tokens["bob"], by="form", source="127.0.0.3") == 303  # other addresses sign in

        others = Counter(_guess(server, f"guess-{i}", by="form", source=f"127.0.1.{1 + i}") for i in range(200))
        passed = time.monotonic() - began
        assert 0 < others[401] <= 100 - same[401] + passed + 1
        assert others[401] + others[429] == 200
        print(f"{passed:.0f} s; from one address {dict(same)}, from 200 {dict(others)}")
        ann.look()
        ann.judge(1)  # those who are signed in go on
    assert len(campaign.state.judged) == 1
