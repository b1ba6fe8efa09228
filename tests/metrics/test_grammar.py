"""A measure is a value: it prints as what it parses from, and wrong names and parameters are refused with a hint."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import probeval.metrics
from probeval.errors import MetricError
from probeval.metrics import REGISTRY, RR, Metric, P, nDCG, parse
from probeval.metrics.metric import ALIASES


@st.composite
def measures(draw) -> Metric:
    """Any measure of the registry, with any parameters and cutoff that it takes."""
    name = draw(st.sampled_from(sorted(REGISTRY)))
    definition = REGISTRY[name]
    parameters = {}
    for key, parameter in definition.parameters.items():
        if draw(st.booleans()):
            continue
        if parameter.choices:
            parameters[key] = draw(st.sampled_from(parameter.choices))
        elif parameter.shares:
            weights = np.array(draw(st.lists(st.floats(0.1, 9), min_size=1, max_size=5)))
            parameters[key] = tuple((weights / weights.sum()).tolist())
        else:
            top = parameter.high or 1e6
            number = st.floats(parameter.low, top, exclude_max=True, allow_nan=False)
            parameters[key] = draw(number | st.integers(int(np.ceil(parameter.low)), int(np.ceil(top)) - 1))
    cutoff = draw(st.integers(1, 10**6)) if definition.cutoff in ("optional", "required") else None
    if definition.cutoff == "optional" and draw(st.booleans()):
        cutoff = None
    return Metric(name, cutoff, parameters)


@given(measures())
def test_a_measure_parses_from_what_it_prints(metric):
    again = parse(str(metric))
    assert again == metric
    assert hash(again) == hash(metric)
    assert str(again) == str(metric) == repr(metric)


@given(measures(), measures())
def test_measures_are_equal_exactly_when_they_print_the_same(a, b):
    assert (a == b) == (str(a) == str(b))
    assert len({a, b, parse(str(a))}) == (1 if a == b else 2)


@given(measures().filter(lambda m: m.parameters.get("mapping") is None), st.randoms(use_true_random=False))
def test_case_spaces_and_quotes_do_not_matter(metric, random):
    text = str(metric)
    name, rest = metric.name, text[len(metric.name) :]
    if len(name) > 1:  # one letter is too little to fold: P and p are different things
        name = "".join(random.choice([c.lower(), c.upper()]) for c in name)
    spaced = f" {name} {rest} ".replace("@", " @ ").replace(",", " , ").replace("=", " = ")
    assert parse(spaced) == metric
    assert parse(spaced.replace('"', "'")) == metric
    assert parse(spaced.replace('"', "")) == metric


@given(measures())
def test_a_measure_can_be_copied_and_sent_to_another_process(metric):
    assert pickle.loads(pickle.dumps(metric)) == metric
    assert copy.deepcopy(metric) == metric


def test_every_measure_is_a_public_name_with_a_summary_and_a_formula():
    for name, definition in REGISTRY.items():
        assert getattr(probeval.metrics, name) == Metric(name)
        assert name in probeval.metrics.__all__
        assert definition.name == name
        assert definition.summary
        assert definition.formula
        assert all(parameter.doc for parameter in definition.parameters.values())


def test_only_what_differs_from_the_default_is_printed():
    assert str(P(rel=1) @ 10) == "P@10"
    assert str(parse('DCG(norm="perfect", gain=linear)@5')) == 'DCG(gain="linear")@5'
    assert str(nDCG(gain="exp") @ 10) == 'nDCG(gain="exp")@10'
    assert str((nDCG(gain="exp") @ 10)(gain=None)) == "nDCG@10"
    assert parse("RBP()") == parse("RBP(p=0.8)") == parse("RBP")


def test_a_fixed_cutoff_is_known_and_not_printed():
    users = parse('PSucc(mapping="CGl@5/fine")')
    assert users.cutoff == 5
    assert users == parse('psucc(mapping="CGl@5/fine")@5')
    assert str(users) == 'PSucc(mapping="CGl@5/fine")'
    with pytest.raises(MetricError, match="PSucc is of the first 5 documents, got @10"):
        parse('PSucc(mapping="CGl@5/fine")@10')
    with pytest.raises(MetricError, match=r"mapping must be 'CGl@5/broad' or .* got 'nDCG@10'"):
        parse('PSucc(mapping="nDCG@10")')


def test_a_number_is_the_same_however_it_is_written():
    one = parse("INSQ(T=2)")
    for other in (parse("INSQ(T=2.0)"), parse("INSQ(T=2e0)"), Metric("INSQ", None, {"T": np.int64(2)})):
        assert other == one
        assert str(other) == "INSQ(T=2)"
        assert hash(other) == hash(one)
    assert str(parse("RBP")(p=np.float64(0.9))) == "RBP(p=0.9)"
    assert str(nDCG @ np.int64(10)) == "nDCG@10"
    assert str(parse("P(rel=1.5)@3")) == "P(rel=1.5)@3"


def test_a_measure_does_not_change():
    parameters = {"rel": 2}
    metric = Metric("P", 10, parameters)
    parameters["rel"] = 3
    assert metric["rel"] == 2
    with pytest.raises(TypeError):
        metric.parameters["rel"] = 3
    with pytest.raises(AttributeError):
        metric.cutoff = 5
    assert RR @ 5 != RR
    assert str(RR) == "RR"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("NDGC@10", "nDCG@10"), ("ndgc", "nDCG"), ("APP", "AP"), ("bperf", "Bpref"), ("RPB(p=0.8)", "RBP"),
        ("p@10", "P@10"), ("f@5", "F@5"), ("r@100", "R@100"), ("suces@5", "Success@5"), ("MAP", "AP"),
        ("map@20", "AP@20"), ("mrr", "RR"), ("MRR@10", "RR@10"), ("recall@100", "R@100"), ("ndcg_cut_10", "nDCG@10"),
        ("recip_rank", "RR"), ("precision@5", "P@5"), ("set_recall", "SetR"), ("f1@10", "F@10"), ("P10", "P@10"),
        ("ndcg_20", "nDCG@20"), ("map5", "AP@5"),
    ],
)  # fmt: skip
def test_a_wrong_name_gets_the_nearest(text, hint):
    with pytest.raises(MetricError) as caught:
        parse(text)
    assert str(caught.value) == f"Unknown metric {text!r}. Did you mean {hint!r}?"
    parse(hint)


def test_every_hint_for_another_tools_name_parses():
    for name, meant in ALIASES.items():
        assert name not in {known.lower() for known in REGISTRY}
        parse(meant)


@pytest.mark.parametrize("text", ["zzzzzzzz", "foo@10"])
def test_a_name_near_nothing_gets_them_all(text):
    with pytest.raises(MetricError) as caught:
        parse(text)
    assert str(caught.value) == f"Unknown metric {text!r}. Known: {', '.join(REGISTRY)}."


def test_several_measures_in_one_text():
    with pytest.raises(MetricError, match=r"^Cannot read 'nDCG@10,AP' as a metric: it names 2\. .*separate metrics\.$"):
        parse("nDCG@10,AP")


def test_what_a_score_can_be():
    assert (nDCG @ 10).limits == (0, 1)
    assert parse("RBP").limits == (0, 1)
    assert parse('CG(norm="none")@5').limits == (0, np.inf)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("AP(norm=ideal)", "AP: norm must be 'min' or 'perfect', got 'ideal'."),
        ("AP(nrm=min)", "AP takes rel, norm; got 'nrm'. Did you mean 'norm'?"),
        ("Judged(x=1)", "Judged takes no parameter; got 'x'."),
        ("RBP(p=1)", "RBP: p must be at least 0 and below 1, got 1."),
        ("RBP(p=-0.1)", "RBP: p must be at least 0 and below 1, got -0.1."),
        ('RBP(p="high")', "RBP: p must be a number, got 'high'."),
        ("INST(T=0.2)", "INST: T must be at least 0.5, got 0.2."),
        ("INSQ(T=1e999)", "INSQ: T must be at least 0.5, got inf."),
        ("F(beta=-1)@5", "F: beta must be at least 0, got -1."),
        ("P(rel=-1)@5", "P: rel must be at least 0, got -1."),
        ("nDCG(gain=cubic)", "nDCG: gain must be 'linear' or 'exp', got 'cubic'."),
        ("nDCG(gain=2)", "nDCG: gain must be 'linear' or 'exp', got 2."),
        ("DCG(discount=ln)@5", "DCG: discount must be 'log2' or 'jk', got 'ln'."),
        ("nDCG@0", "nDCG: the cutoff must be a whole number from 1, got @0."),
        ("nDCG@-3", "nDCG: the cutoff must be a whole number from 1, got @-3."),
        ("nDCG@1.5", "nDCG@1.5: the cutoff must be a whole number from 1, got @1.5."),
        ("nDCG@k", "nDCG@k: the cutoff must be a whole number from 1, got @k."),
        ("Bpref@10", "Bpref takes no cutoff, got @10."),
        ("INST@10", "INST takes no cutoff, got @10."),
    ],
)
def test_a_wrong_parameter_or_cutoff_is_refused(text, message):
    with pytest.raises(MetricError) as caught:
        parse(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "@10", "nDCG@", "nDCG@10@5", "nDCG(10)", "nDCG(**x)", "nDCG(gain)", "nDCG(gain=)",
        "P(rel=1, rel=2)@10", "R(rel=[1])@3", "nDCG@True", "nDCG(gain=True)", "a.b@3", "1@3", "nDCG+1", "nDCG; AP",
        "nDCG@10\nAP", "(" * 300, "\0", "P(rel=1)(rel=2)@3", "RBP(p=-x)", "nDCG 10",
    ],
)  # fmt: skip
def test_what_is_no_measure_at_all_is_refused_in_a_line(text):
    with pytest.raises(MetricError) as caught:
        parse(text)
    assert str(caught.value).startswith(f"Cannot read {text!r} as a metric")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("cutoff", [0, -1, 2.0, "10", True])
def test_a_wrong_cutoff_is_refused_in_python_too(cutoff):
    with pytest.raises(MetricError, match="the cutoff must be a whole number from 1"):
        nDCG @ cutoff


@pytest.mark.parametrize("value", [float("nan"), float("inf"), False, "1", 1j])
def test_a_parameter_that_is_no_number_is_refused_in_python_too(value):
    with pytest.raises(MetricError, match="rel must be"):
        P(rel=value)
