"""Rows of dots: where a value, a mean and a spread are drawn."""

import re

import pytest

from propos.study.figures import Dots, draw


def test_dots_lie_where_their_values_are_and_the_mean_between_them():
    svg = draw([Dots("NMI", [("one", [0.2, 0.4]), ("the other", [0.8])])]).svg()
    xs = [float(each) for each in re.findall(r'<circle cx="([\d.]+)"', svg)]
    assert len(xs) == 3
    # 0.2, 0.4 and 0.8 are a third and a whole of the way apart.
    assert (xs[1] - xs[0]) / (xs[2] - xs[0]) == pytest.approx(1 / 3, abs=0.01)
    marks = re.findall(r'points="([\d.]+),([\d.]+) ([\d.]+),([\d.]+)" fill="none" stroke="#0b6b69"', svg)
    upright = [float(x0) for x0, _, x1, _ in marks if x0 == x1]
    assert upright == [pytest.approx((xs[0] + xs[1]) / 2, abs=0.11)]
    spread = [(float(x0), float(x1)) for x0, y0, x1, y1 in marks if y0 == y1]
    # The standard deviation of 0.2 and 0.4 is 0.1414, and the axis begins 0.036 below 0.2.
    assert spread[0][0] == pytest.approx(xs[0] - 0.0361 / 0.6 * (xs[2] - xs[0]), abs=3)


def test_a_method_without_numbers_says_so():
    svg = draw([Dots("NMI", [("one", [0.5]), ("two", [])])]).svg()
    assert "nothing measured" in svg
    assert draw([Dots("NMI", [("one", [])])]).png()[:4] == b"\x89PNG"
