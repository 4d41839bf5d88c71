import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.quality import Smoothed

observations = st.lists(st.tuples(st.floats(0, 1e3), st.floats(1e-3, 1e6)), min_size=1, max_size=50)
alphas = st.floats(0.01, 1.0)


@given(st.lists(st.floats(0, 1e3), min_size=1, max_size=50), alphas, st.floats(0.1, 100))
def test_equal_weights_give_the_formula_of_the_paper(values, alpha, weight):
    smoothed = Smoothed(alpha)
    expected = values[0]
    smoothed.observe(values[0], weight)
    for value in values[1:]:
        expected = expected * (1 - alpha) + value * alpha
        smoothed.observe(value, weight)
    assert smoothed.value == pytest.approx(expected, abs=1e-9)


@given(observations, alphas)
def test_stays_between_the_extremes(pairs, alpha):
    smoothed = Smoothed(alpha)
    for value, weight in pairs:
        smoothed.observe(value, weight)
    values = [value for value, _ in pairs]
    assert min(values) * (1 - 1e-9) - 1e-9 <= smoothed.value <= max(values) * (1 + 1e-9) + 1e-9


def test_a_train_of_one_tuple_hardly_moves_what_a_large_one_said():
    smoothed = Smoothed(0.2)
    smoothed.observe(1.0, 100_000)
    smoothed.observe(500.0, 1)
    assert smoothed.value == pytest.approx(1.0, abs=0.01)
    smoothed.observe(2.0, 100_000)
    assert smoothed.value == pytest.approx(1.2, abs=0.05)


def test_the_first_observation_replaces_the_prior():
    smoothed = Smoothed(0.1, prior=7.0)
    assert (smoothed.value, smoothed.learned) == (7.0, False)
    smoothed.observe(3.0, 0.0)
    assert (smoothed.value, smoothed.learned) == (7.0, False)
    smoothed.observe(3.0)
    assert (smoothed.value, smoothed.learned) == (3.0, True)


def test_follows_a_lasting_change():
    smoothed = Smoothed(0.2)
    for value in [1.0] * 50 + [9.0] * 50:
        smoothed.observe(value, 10)
    assert smoothed.value == pytest.approx(9.0, rel=1e-3)


@pytest.mark.parametrize("alpha", [0.0, -1.0, 1.1])
def test_alpha_is_a_share(alpha):
    with pytest.raises(ValueError, match="alpha"):
        Smoothed(alpha)
