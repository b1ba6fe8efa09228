"""The reliability of results: significance, effect sizes, agreement, variance components."""

from probeval.reliability.agreement import LEVELS, WEIGHTS, krippendorff_alpha, pair_labels, weighted_kappa
from probeval.reliability.banding import BandStudy, band_study
from probeval.reliability.coefficients import COEFFICIENTS, Estimate
from probeval.reliability.correlation import Overlap, agreements, ap_correlation, kendall, rank_biased_overlap, spearman
from probeval.reliability.designs import Design
from probeval.reliability.dstudy import MAPPINGS, DStudy, Needed, StudyPoint, dstudy
from probeval.reliability.effect_sizes import (
    EffectSizes,
    equivalence_test,
    mean_effect,
    standardised_effect,
    superiority,
)
from probeval.reliability.gstudy import INTERVALS, METHODS, GStudy, gstudy
from probeval.reliability.incomplete import Decisions, difference_bounds, probability_significant, rules
from probeval.reliability.multiple import (
    CORRECTIONS,
    SIGNIFICANCE,
    Friedman,
    adjust,
    benjamini_hochberg,
    friedman,
    holm,
    randomised_tukey,
    significant_signs,
    studentised_range,
    tukey_hsd,
)
from probeval.reliability.observed import Observed, observe, observe_assessors, read_scores
from probeval.reliability.one_sided import TargetTests, compare_with_target, noninferiority_test
from probeval.reliability.paired import (
    ALTERNATIVES,
    SAMPLES,
    TESTS,
    bootstrap_test,
    differences,
    pair_index,
    permutation_test,
    run_test,
    sign_test,
    t_test,
    wilcoxon_test,
)
from probeval.reliability.posterior import FAMILIES, ScorePosterior, compare_bayes
from probeval.reliability.power import minimum_difference, power_of, queries_needed
from probeval.reliability.resampling import Resamples
from probeval.reliability.significance import COMPARISONS, Pairwise, compare
from probeval.reliability.splithalf import BINS, OUTCOMES, SplitHalf, split_half, split_halves
from probeval.reliability.twoway import TwoWay, compare_counts, p_trend, signed, straddling, two_way

__all__ = [
    "ALTERNATIVES",
    "BINS",
    "COEFFICIENTS",
    "COMPARISONS",
    "CORRECTIONS",
    "FAMILIES",
    "INTERVALS",
    "LEVELS",
    "MAPPINGS",
    "METHODS",
    "OUTCOMES",
    "SAMPLES",
    "SIGNIFICANCE",
    "TESTS",
    "WEIGHTS",
    "BandStudy",
    "DStudy",
    "Decisions",
    "Design",
    "EffectSizes",
    "Estimate",
    "Friedman",
    "GStudy",
    "Needed",
    "Observed",
    "Overlap",
    "Pairwise",
    "Resamples",
    "ScorePosterior",
    "SplitHalf",
    "StudyPoint",
    "TargetTests",
    "TwoWay",
    "adjust",
    "agreements",
    "ap_correlation",
    "band_study",
    "benjamini_hochberg",
    "bootstrap_test",
    "compare",
    "compare_bayes",
    "compare_counts",
    "compare_with_target",
    "difference_bounds",
    "differences",
    "dstudy",
    "equivalence_test",
    "friedman",
    "gstudy",
    "holm",
    "kendall",
    "krippendorff_alpha",
    "mean_effect",
    "minimum_difference",
    "noninferiority_test",
    "observe",
    "observe_assessors",
    "p_trend",
    "pair_index",
    "pair_labels",
    "permutation_test",
    "power_of",
    "probability_significant",
    "queries_needed",
    "randomised_tukey",
    "rank_biased_overlap",
    "read_scores",
    "rules",
    "run_test",
    "sign_test",
    "signed",
    "significant_signs",
    "spearman",
    "split_half",
    "split_halves",
    "standardised_effect",
    "straddling",
    "studentised_range",
    "superiority",
    "t_test",
    "tukey_hsd",
    "two_way",
    "weighted_kappa",
    "wilcoxon_test",
]
