"""Medians, intervals and verdicts on differences."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceq.analysis import stats

times = st.lists(st.integers(1, 10**12), min_size=1, max_size=12)


def noisy(centre, count, seed):
    draw = random.Random(seed)
    return [draw.gauss(centre, centre / 50) for _ in range(count)]


def test_the_median_of_an_even_number_is_the_mean_of_the_middle_two():
    assert stats.median([4, 1, 10, 2]) == 3


def test_nothing_has_no_median():
    with pytest.raises(ValueError, match="no values"):
        stats.median([])


def test_an_interval_holds_the_median_and_is_the_same_each_time():
    sample = noisy(100, 15, 1)
    found = stats.bootstrap_median(sample)
    assert found.low < found.value < found.high
    assert found == stats.bootstrap_median(sample)


def test_about_nineteen_of_twenty_intervals_hold_the_true_median():
    found = [stats.bootstrap_median(noisy(100, 15, seed)) for seed in range(100)]
    assert 88 <= sum(e.low <= 100 <= e.high for e in found) <= 100


def test_one_value_has_no_interval():
    assert stats.bootstrap_median([7]) == stats.Estimate(7)


def test_a_clear_difference_is_real():
    assert stats.difference_of_medians(noisy(100, 10, 1), noisy(110, 10, 2)).verdict == stats.REAL


def test_two_samples_of_one_thing_differ_within_noise():
    assert stats.difference_of_medians(noisy(100, 10, 1), noisy(100, 10, 2)).verdict == stats.WITHIN_NOISE


def test_with_one_value_on_a_side_the_noise_is_unknown():
    found = stats.difference_of_medians([100], [50, 51, 52])
    assert (found.value, found.low, found.verdict) == (-49, None, stats.NOISE_UNKNOWN)


@given(times, times)
def test_the_difference_turned_round_is_its_negative(first, second):
    there, back = stats.difference_of_medians(first, second), stats.difference_of_medians(second, first)
    assert (there.value, there.verdict) == (-back.value, back.verdict)
    if there.low is not None:
        assert (there.low, there.high) == (-back.high, -back.low)


@given(times)
def test_a_sample_differs_from_itself_by_nothing(sample):
    found = stats.difference_of_medians(sample, sample)
    assert found.value == 0
    assert found.low in (0, None)
    assert found.verdict != stats.REAL


def test_intervals_alone_can_tell_a_real_difference():
    first, second = stats.Estimate(100, 98, 102), stats.Estimate(110, 109, 112)
    found = stats.difference_of_estimates(first, second)
    assert found.verdict == stats.REAL
    assert found.low == pytest.approx(10 - 5**0.5)
    assert found.high == pytest.approx(10 + 8**0.5)


def test_intervals_that_touch_differ_within_noise():
    assert stats.difference_of_estimates(stats.Estimate(100, 95, 105), stats.Estimate(103, 98, 108)).verdict == (
        stats.WITHIN_NOISE
    )


def test_a_side_without_interval_leaves_the_noise_unknown():
    assert stats.difference_of_estimates(stats.Estimate(100), stats.Estimate(110, 109, 112)).verdict == (
        stats.NOISE_UNKNOWN
    )
