"""What Golab (J1 to J5) has found about joins of many windows, and whether it is found here."""

from __future__ import annotations

from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING

from benchmarks.join_plans.golab import Technique
from benchmarks.join_plans.golab_experiments import BUCKETS, ROUNDS, WAYS
from benchmarks.techniques.shapes import Shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.join_plans.golab_experiments import Orders

__all__ = ["found_in_losses", "found_in_orders", "found_in_rounds"]

_RANKED = 0.95
_HALF, _LEAST, _MOST = 0.5, 0.4, 1.0


def found_in_orders(found: Mapping[str, Orders]) -> Iterator[Shape]:
    """J1."""
    agreement = {way: min(one.agreement(way) for one in found.values()) for way in WAYS}
    yield Shape(
        "J1: orders rank as the cost model says",
        min(agreement.values()) >= _RANKED,
        "correlation of ranks, at least: "
        + "; ".join(f"{way} {share:.3f}" for way, share in agreement.items()),
        "orders that cost nearly the same change places by chance, the more the fewer rows come",
    )
    eager = {name: one.spread("eager") for name, one in found.items()}
    yield Shape(
        "J1: orders differ by less than it says, since rows are stored as well",
        all(one.spread("eager") <= one.spread() for one in found.values()),
        "the worst by the best: "
        + "; ".join(f"{n} {one.spread():.2f} said, {eager[n]:.2f}" for n, one in found.items()),
        "what is stored is little beside what is compared, and what a slow stream brings, of which "
        "there are few rows at a time, is more or less by chance",
    )
    for way in ("eager, hashed", "lazy"):
        spreads = {name: one.spread(way) for name, one in found.items()}
        yield Shape(
            f"J1: orders differ less, {way}",
            all(spreads[name] < eager[name] for name in found),
            "; ".join(f"{name} {share:.2f}" for name, share in spreads.items()),
            "a round saves about as many comparisons in each order, and as much removal, which is "
            "a greater part of what a cheap order costs",
        )
    yield Shape(
        "G-36: the order of the augmented heuristic is the best, or close to it",
        all(one.augmented <= 1.5 for one in found.values()),  # noqa: PLR2004 — half more
        "; ".join(
            f"{name} {one.augmented:.2f}, without a fast stream moved {one.initial:.2f}"
            for name, one in found.items()
        ),
        "the pair with the fewest results need not be cheap to probe",
    )


def found_in_rounds(costs: Mapping[tuple[int, Technique], Sequence[int]]) -> Iterator[Shape]:
    """J2 to J4."""
    scan, few, many = BUCKETS
    later, lazy, restored = (
        Technique.LAZY_EXPIRATION,
        Technique.LAZY,
        Technique.RESTORE,
    )
    yield Shape(
        "J2, windows scanned: eager evaluation costs more, the rarer rows are removed",
        _rises(costs[scan, later]),
        _shares(costs[scan, later]),
    )
    yield Shape(
        "J2: lazy evaluation costs less, the rarer it is",
        _rises([-cost for cost in costs[scan, lazy]]),
        _shares(costs[scan, lazy]),
    )
    yield Shape(
        "J2: lazy with all results costs less, the rarer it is",
        _rises([-cost for cost in costs[scan, restored][1:]]),
        _shares(costs[scan, restored]),
        "for the least Δ it costs more than eager, as times are compared; and when Δ is nearly as "
        "long as the shortest window, rows that have ended are scanned",
    )
    yield Shape(
        "J2: lazy is cheaper than eager, and with all results it is in between",
        all(
            a < b < c
            for a, b, c in zip(
                *(costs[scan, way][1:] for way in (lazy, restored, later)), strict=True
            )
        ),
        "Δ = "
        + "; ".join(
            f"{every}: {costs[scan, lazy][i] / costs[scan, later][i]:.2f}, "
            f"{costs[scan, restored][i] / costs[scan, later][i]:.2f}"
            for i, every in enumerate(ROUNDS)
            if i
        ),
    )
    yield Shape(
        "J3, few buckets: with all results, lazy is worse than eager for small Δ, then better",
        costs[few, restored][1] > costs[few, later][1]
        and any(a < b for a, b in zip(costs[few, restored], costs[few, later], strict=True)),
        "by eager: "
        + ", ".join(
            f"{a / b:.2f}"
            for a, b in list(zip(costs[few, restored], costs[few, later], strict=True))[1:]
        ),
    )
    dearest = {b: max(costs[b, way][i] for way in (later, lazy, restored) for i in (1, 2, 3))
               for b in BUCKETS}  # fmt: skip
    yield Shape(
        "J4, many buckets: everything is cheaper",
        dearest[many] < dearest[few] < dearest[scan],
        "the dearest for Δ up to 20: " + ", ".join(f"{dearest[b]:,}" for b in BUCKETS),
    )
    eager = costs[many, later]
    best = eager.index(min(eager))
    yield Shape(
        "J4: eager gets cheaper at first, as not each row touches all buckets, and then dearer",
        0 < best < len(eager) - 1,
        _shares(eager),
    )


def found_in_losses(
    shares: Sequence[float],
    lost: Sequence[float],
    lags: Sequence[float],
    lagging: Sequence[float],
) -> Iterator[Shape]:
    """J5: what is lost of the results, where lazy evaluation does not give those that are over."""
    slopes = [loss / share for share, loss in zip(shares, lost, strict=True)]
    yield Shape(
        "J5: without RESTORE results are lost in proportion to Δ by the window",
        min(slopes) >= _LEAST and max(slopes) <= _MOST and max(slopes) < 1.5 * min(slopes),
        "; ".join(f"{share:.2g}: {loss:.1%}" for share, loss in zip(shares, lost, strict=True)),
    )
    yield Shape(
        "J5, by us: of two windows it is half of Δ by the window, less than what is printed",
        all(abs(slope - _HALF) < 0.1 for slope in slopes),  # noqa: PLR2004 — near
        f"{fmean(slopes):.2f} times, on average",
    )
    yield Shape(
        "J5: if one stream lags by nearly a window, nearly all are lost",
        lagging[-1] > 0.9 and lagging[0] < 0.1,  # noqa: PLR2004 — nearly
        "; ".join(f"{lag:.2f}: {loss:.0%}" for lag, loss in zip(lags, lagging, strict=True)),
    )


def _rises(line: Sequence[float]) -> bool:
    return all(before < after for before, after in pairwise(line))


def _shares(line: Sequence[int]) -> str:
    """Costs by the first of them, as Δ grows."""
    return ", ".join(f"{cost / line[0]:.2f}" for cost in line)
