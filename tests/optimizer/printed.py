"""The formulas of resources as Krämer's thesis prints them (22.13 to 22.56), written once more.

They are an oracle and a point of reference, not the cost model of this engine, which works in steps
on columns: ``test_printed_formulas.py`` says where the two agree and where they differ. Memory is
the steady state; work is per unit of the stream's time. ``C_X`` of the thesis is ``x`` of
``Costs``, whose meaning differs from operator to operator, as there.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tidemill.optimizer import characteristics as shape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.optimizer.characteristics import Triple

Costs = defaultdict[str, float]


def costs(known: Mapping[str, float]) -> Costs:
    """Some of the variables; all others cost nothing."""
    return defaultdict(float, known)


# Rows


def filter_work(of: Triple, selectivity: float, c: Costs) -> float:
    """22.14."""
    return c["P"] / of.distance + c["O"] / shape.select(of, selectivity).distance


def map_work(of: Triple, c: Costs) -> float:
    """22.15."""
    return (c["F"] + c["C"]) / of.distance + c["O"] / of.distance


def union_work(inputs: list[Triple], c: Costs) -> float:
    """22.17."""
    return c["O"] / shape.union(inputs).distance


# Joins


def join_memory(left: Triple, right: Triple, sizes: tuple[float, float] = (1, 1)) -> float:
    """22.18: what is valid, and what waits for the next arrival on the other side to go."""
    return sum(
        (one.length / one.distance + other.distance / (2 * one.distance)) * size
        for (one, other), size in zip(((left, right), (right, left)), sizes, strict=True)
    )


def join_work(
    left: Triple, right: Triple, selectivity: float, c: Costs, buckets: tuple[float, float] = (1, 1)
) -> dict[str, float]:
    """22.20 to 22.23: the four parts of 22.19."""
    d1, l1, d2, l2 = left.distance, left.length, right.distance, right.length
    b1, b2 = buckets
    both = 1 / d1 + 1 / d2
    return {
        "insert": both * (c["H"] + c["B"]) + c["L1"] / d1 + c["L2"] / d2,
        "probe": (l2 / b2 + l1 / b1) / (d1 * d2) * c["P"] + both * c["H"],
        "result": selectivity * (l1 + l2) / (d1 * d2) * (c["F"] + c["O"]),
        "purge": both * (2 * c["R"] + c["B"]) + c["L2"] / d1 + c["L1"] / d2,
    }


# Duplicates


def distinct_memory(of: Triple, size: float = 1) -> float:
    """22.24."""
    return of.length / of.distance * size


def distinct_work(of: Triple, rows: float, c: Costs, buckets: float = 1) -> dict[str, float]:
    """22.26 to 22.29; ``rows`` is how many different ones there are."""
    d, length = of.distance, of.length
    if rows * d <= length:
        parts = {
            "purge": c["R"],
            "probe": c["H"] + c["P"] * rows / buckets,
            "insert": c["H"] + c["B"] + c["U"] + c["C"] + c["Q"],
            "transfer": 2 * (c["E"] + c["M"]) + c["Q"] + c["O"],
        }
    else:
        parts = {
            "purge": 2 * c["R"] + c["B"] + c["L"],
            "probe": c["H"] + c["P"] * length / (d * buckets),
            "insert": c["H"] + c["B"] + c["L"] + c["O"],
            "transfer": c["E"],
        }
    return {name: part / d for name, part in parts.items()}


# Aggregates


def partial_aggregates(of: Triple) -> float:
    """K: how many of them a scalar aggregate remembers; only ends make lasting cuts."""
    share = shape.covered_share(of.granule / of.length, of.length / of.distance)
    return of.length / of.granule * share


def aggregate_memory(of: Triple, size: float = 1) -> float:
    """22.30."""
    return partial_aggregates(of) * size if of.distance < of.length else size


def aggregate_work(of: Triple, c: Costs) -> dict[str, float]:
    """22.32 to 22.34."""
    d, out = of.distance, shape.aggregate(of).distance
    extract = (c["R"] + c["E"] + c["L"] + c["O"]) / out + c["R"] / d
    if d < of.length:
        init = (2 * c["C"] + c["I"] + 2 * c["L"]) / (2 * out)
        each = c["P"] + c["C"] + c["M"] + c["L"]
        return {"init": init, "update": partial_aggregates(of) / d * each, "extract": extract}
    return {"init": (c["C"] + c["I"] + c["L"]) / d, "update": c["P"] / d, "extract": extract}


def _within(of: Triple, groups: float) -> Triple:
    return of._replace(distance=groups * of.distance)


def group_memory(of: Triple, groups: float, s: Costs) -> float:
    """22.35; ``s`` has the sizes of partial and final aggregates, group ids and map entries."""
    within = _within(of, groups)
    if within.distance < of.length:
        partial = groups * partial_aggregates(within) * s["p"]
        return partial + groups * (s["m"] + s["g"] + s["a"])
    return groups * s["m"] + s["p"] + s["g"] + s["a"]


def group_work(of: Triple, groups: float, c: Costs, inner: Costs) -> dict[str, float]:
    """22.37 to 22.39; ``inner`` has the variables of the aggregate of a group."""
    within, d = _within(of, groups), of.distance
    out, parts = shape.group(of, groups).distance, aggregate_work(within, inner)
    gathered = (c["E"] + c["M"] + c["A"] + 3 * c["Q"] + c["C"]) / out
    waits = c["E"] + c["M"] if within.distance < of.length else c["E"]
    return {
        "update": (c["G"] + c["A"]) / d + groups * (parts["init"] + parts["update"]),
        "gather": gathered + groups * parts["extract"],
        "transfer": (c["E"] + c["M"] + c["Q"]) / out + waits / d,
    }


# Times


def split_memory(of: Triple, most: float, size: float = 1) -> float:
    """22.40."""
    if most >= of.length:
        return 0.0
    return (of.length / of.distance + of.length / (2 * most)) * size


def split_work(of: Triple, most: float, c: Costs) -> dict[str, float]:
    """22.42 to 22.44."""
    d = of.distance
    if most >= of.length:
        return {"insert": 0.0, "split": (c["S"] + c["O"]) / d, "purge": c["R"] / d}
    pieces = of.length / most * (c["S"] + c["C"] + 2 * c["Q"] + c["E"] + c["O"])
    return {
        "insert": c["I"] / d,
        "split": (c["S"] + c["C"] + pieces) / d,
        "purge": (2 * c["R"] + c["D"]) / d,
    }


def granularity_work(of: Triple, granule: float, c: Costs) -> float:
    """22.46."""
    if of.length >= granule:
        return (2 * c["S"] + c["T"] + c["C"] + c["O"]) / of.distance
    out = shape.granularity(of, granule).distance
    return (2 * c["S"] + c["T"]) / of.distance + (c["C"] + c["O"]) / out


def time_window_work(of: Triple, c: Costs) -> float:
    """22.48."""
    return (c["S"] + c["C"] + c["O"]) / of.distance


def row_window_memory(rows: float, size: float = 1) -> float:
    """22.49."""
    return rows * size


def row_window_work(of: Triple, c: Costs) -> float:
    """22.50."""
    return (c["R"] + c["D"] + c["C"] + c["O"] + c["I"]) / of.distance


def partitioned_window_memory(rows: float, groups: float, s: Costs) -> float:
    """22.51; ``s`` has the sizes of elements, map entries and references."""
    return groups * (rows * s["s"] + s["m"] + s["g"] + s["s"])


def partitioned_window_work(of: Triple, c: Costs) -> dict[str, float]:
    """22.53 to 22.56."""
    parts = {
        "group": c["G"] + c["A"],
        "extract": c["P"] + c["C"] + c["Q"] + c["D"],
        "insert": c["I"] + c["Q"],
        "transfer": 2 * (c["E"] + c["M"]) + c["Q"] + c["O"],
    }
    return {name: part / of.distance for name, part in parts.items()}
