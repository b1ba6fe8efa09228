from __future__ import annotations

import json

import numpy as np
import pytest

from probeval.arrays import objects
from probeval.errors import DataError, SatisfactionError
from probeval.satisfaction import ListAnswers, Preferences, load_agreement, load_mapping, read_list_answers
from probeval.studies import UserStudy

NONE = float("nan")


def answers(*rows: tuple[str, float, float, str, str]) -> ListAnswers:
    """Answers by user, scores of both sides, answer and trap."""
    users, a, b, given, traps = zip(*rows, strict=True)
    n = len(rows)
    return ListAnswers(
        Preferences(np.array(a), np.array(b), objects(given), "P@5/binary"),
        objects([f"q{i % 3}" for i in range(n)]),
        objects(users),
        objects([f"d{i} d{i + 1}" for i in range(n)]),
        objects([f"d{i} d{i + 1}" if x == y else f"e{i} d{i}" for i, (x, y) in enumerate(zip(a, b, strict=True))]),
        objects(traps),
        np.array([1.0 if i % 2 else 0.0 if g in "ab" else NONE for i, g in enumerate(given)]),
        np.array([float(i) if i else NONE for i in range(n)]),
    )


ROWS = [
    ("ann", 0.9, 0.1, "a", ""),
    ("ann", 0.2, 0.8, "b", ""),
    ("ann", 0.5, 0.5, "good", ""),
    ("ann", 0.1, 0.2, "bad", ""),
    ("ann", 0.3, 0.3, "good", "same"),
    ("ann", 0.9, 0.0, "a", "a"),
    ("ann", 0.0, 0.9, "b", "b"),
    ("zed", 0.9, 0.1, "b", ""),
    ("zed", 0.3, 0.3, "a", "same"),
    ("zed", 0.9, 0.0, "bad", "a"),
    ("zed", 0.0, 0.9, "b", "b"),
]


def test_traps_check_users_and_do_not_count():
    study = UserStudy(answers(*ROWS))
    assert len(study.counted) == 5
    ann, zed = study.users
    assert (ann.answers, ann.traps, ann.right, ann.is_bad, ann.left) == (4, 3, 3, False, 0.5)
    assert (zed.answers, zed.traps, zed.right, zed.is_bad) == (1, 3, 1, True)
    assert ann.seconds == 3.5
    assert study.bad_users == ("zed",)
    assert "4 of 6 traps were answered right." in study.sentences()
    assert "Fewer than 70% of the traps right: zed. Their answers count" in study.sentences()[-1]


def test_bad_users_are_left_out_only_when_asked():
    rows = answers(*ROWS)
    assert UserStudy(rows).agreement.worse.sum() == 1
    without = UserStudy(rows, leave_out=True)
    assert without.agreement.worse.sum() == 0
    assert len(without.counted) == 4
    assert without.to_dict()["left_out"] == ["zed"]
    assert UserStudy(rows, least_right=0.3, leave_out=True).to_dict()["left_out"] == []
    assert "Their answers are left out." in without.sentences()[-1]


def test_two_traps_are_too_few_to_name_anyone():
    rows = [row for row in ROWS if row[4] != "b"]
    assert UserStudy(answers(*rows)).bad_users == ()


def test_nothing_is_told_of_users_after_three_answers():
    few = UserStudy(answers(*ROWS[:3])).sentences()
    assert few == (
        "3 answers, 2 preferences, 1 both good, 0 both bad.",
        "Too few answers to tell anything of users: it takes 20.",
    )
    assert any("Half of the users" in sentence for sentence in UserStudy(answers(*ROWS * 4)).sentences())


def test_identical_lists_side_and_ends():
    rows = [
        ("", 0.05, 0.05, "good", ""),
        ("", 0.05, 0.05, "a", ""),
        ("", 0.95, 0.0, "bad", ""),
        ("", 1.0, 0.2, "a", ""),
    ]
    study = UserStudy(answers(*rows))
    assert (study.identical, study.identical_preferred) == (2, 1)
    assert study.side is not None
    assert (study.side.share, study.side.lower) == pytest.approx((1.0, 0.3424), abs=1e-4)  # Wilson, 2 of 2
    low, high = study.lowest, study.highest
    assert low is not None
    assert high is not None
    assert (low.share, low.n, high.share, high.n) == (pytest.approx(2 / 3), 3, 0.0, 1)
    assert study.endpoint_bias == pytest.approx(np.sqrt(((2 / 3) ** 2 + 1) / 2))
    assert study.mapping is None
    assert any("fewer than 4 tenths" in sentence for sentence in UserStudy(answers(*rows * 5)).sentences())
    assert len(study.tables()) == 1  # users without names have no table


@pytest.mark.parametrize("level", [0.5, 0.95, 0.9999])
def test_intervals_of_shares_are_between_0_and_1(level):
    for given in (["a"] * 3, ["b"] * 3, ["good"] * 3, ["bad"] * 3):
        rows = [("", 0.0, 1.0, answer, "") for answer in given]
        study = UserStudy(answers(*rows), level=level)
        for found in (study.side, study.chosen_good, study.lowest, study.highest):
            if found is not None:
                assert 0 <= found.lower <= found.upper <= 1
                assert found.lower - 1e-12 <= found.share <= found.upper + 1e-12  # equal at 0 and 1, but for rounding


@pytest.fixture(scope="module")
def made_up() -> UserStudy:
    """Users who notice a difference with its probability, and like a list with its score."""
    rng = np.random.default_rng(1)
    a, b = rng.random((2, 6000))
    notices = rng.random(6000) < np.abs(a - b)
    likes = rng.random(6000) < (a + b) / 2
    given = np.where(notices, np.where(a > b, "a", "b"), np.where(likes, "good", "bad"))
    return UserStudy(ListAnswers.of(Preferences(a, b, given, "CG@5/fine")), mapping_shape="monotone")


def test_the_mapping_and_the_agreement_are_those_of_the_users(made_up):
    assert made_up.mapping is not None
    np.testing.assert_allclose(made_up.mapping([0.2, 0.5, 0.8]), [0.28, 0.5, 0.72], atol=0.06)
    shares = made_up.agreement.to_frame()["better"]
    np.testing.assert_allclose(shares, np.arange(10) / 10 + 0.05, atol=0.07)
    assert made_up.noticeable == 0.5
    assert made_up.agreement.worse.sum() == 0
    frame = made_up.to_frame()
    np.testing.assert_allclose(frame["mapped"], frame["satisfied"], atol=0.08)


def test_saved_users_are_found_by_their_file(made_up, tmp_path):
    path = tmp_path / "users.json"
    made_up.save(path)
    mapping, agreement = load_mapping(str(path)), load_agreement(str(path))
    assert mapping == made_up.mapping
    assert (mapping.name, mapping.origin) == ("CG@5/fine", "6,000 answers")
    assert agreement.to_frame().equals(made_up.agreement.to_frame())
    assert agreement.noticeable(0.5) == made_up.noticeable


def test_a_file_without_a_mapping_has_an_agreement(tmp_path):
    path = tmp_path / "few.json"
    UserStudy(answers(*ROWS)).save(path)
    with pytest.raises(SatisfactionError, match=r"few.json: has no mapping"):
        load_mapping(str(path))
    assert load_agreement(str(path)).n.sum() == 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "not a file of users"),
        ({"version": 2}, "users of version 2: this probeval reads 1"),
        ({"mapping": {"coefficients": [], "residual": 0.1}}, "damaged"),
        ({"mapping": {"coefficients": ["x"], "residual": 0.1}}, "damaged"),
        ({"agreement": {"better": [1] * 9, "neither": [0] * 10, "worse": [0] * 10}}, "damaged"),
        ({"agreement": None}, "damaged"),
        ({"name": 3}, "damaged"),
    ],
)
def test_a_file_that_is_not_of_users_is_refused(made_up, tmp_path, change, message):
    path = tmp_path / "users.json"
    made_up.save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    for load in (load_mapping, load_agreement):
        with pytest.raises(DataError, match=message):
            load(str(path))


def test_text_that_is_no_json_is_refused(put):
    with pytest.raises(DataError, match="not a file of users"):
        load_mapping(str(put("mine.json", "{")))


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_exported_answers_come_back(kind, put):
    before = answers(*ROWS)
    after = read_list_answers(put(f"answers.{kind}", before.export(kind)))
    assert after.to_frame().equals(before.to_frame())
    assert repr(UserStudy(after).to_dict()) == repr(UserStudy(before).to_dict())


def test_a_formula_in_a_name_comes_back(put):
    before = answers(("=cmd()", 0.2, 0.4, "a", ""))
    text = before.export()
    assert "\n=cmd" not in text.replace(",", "\n")
    assert read_list_answers(put("answers.csv", text)).user.tolist() == ["=cmd()"]


def test_a_table_of_ones_own(put):
    text = "x,y,said,d1l,d2l,d1r,d2r\n.1,.2,L,a,b,a,b\n.3,.3,none,a,b,b,a\n"
    found = read_list_answers(
        put("mine.csv", text), a="x", b="y", answer="said", words={"L": "a", "none": "bad"}, docs_a="d#l", docs_b="d#r"
    )
    assert found.docs_a.tolist() == ["a b", "a b"]
    assert found.is_identical.tolist() == [True, False]
    assert found.preferences.name == "x, y"
    study = UserStudy(found)
    assert (study.identical, study.identical_preferred) == (1, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("score_a,score_b,answr\n.1,.2,a\n", r"no column 'answer'. Did you mean 'answr'"),
        ("score_a,score_b,answer\n.1,.2,left\n", "An answer is 'a', 'b', 'good', 'bad', got 'left'"),
        ("score_a,score_b,answer\n.1,x,a\n", "score_b in row 1 must be a number, got 'x'"),
        ("score_a,score_b,answer,trap\n.1,.2,a,c\n", "The right answer of a trap is a, b or same"),
        ("score_a,score_b,answer,chosen_good\n.1,.2,a,2\n", "must be 1, 0 or empty"),
    ],
)
def test_wrong_tables_are_refused(put, text, message):
    with pytest.raises(DataError, match=message):
        read_list_answers(put("answers.csv", text))


def test_wrong_settings_are_refused(put):
    rows = answers(*ROWS)
    with pytest.raises(SatisfactionError, match="No shape 'square'"):
        UserStudy(rows, mapping_shape="square")
    with pytest.raises(SatisfactionError, match="from 0 to 1, got 2"):
        UserStudy(rows, least_right=2)
    with pytest.raises(SatisfactionError, match="No answers are left"):
        UserStudy(rows.take(rows.is_trap))
    with pytest.raises(DataError, match="no column 'd1x'"):
        read_list_answers(put("answers.csv", rows.export()), docs_a="d#x")
