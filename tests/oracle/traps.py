"""Queries that are easy to get wrong, written down: texts over ``world.py``."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from oracle.contents import Element, Inputs

if TYPE_CHECKING:
    from oracle.contents import Row

__all__ = ["INPUTS", "TRAPS"]

_MOMENT = datetime(2020, 2, 29, 12, 30, 15, 250_000)  # noqa: DTZ001 — without a zone, as TIMESTAMP
_LEAP, _NEXT = date(2020, 2, 29), date(2021, 1, 3)
_HALF, _TWO = Decimal("0.50"), Decimal("2.00")


def _stream(*elements: tuple[int, Row]) -> list[Element]:
    return [Element(time, number, (time, *row)) for number, (time, row) in enumerate(elements)]


INPUTS = Inputs(
    {
        "a": _stream(
            (1, (1, 1, 1.0, "a", True, _HALF, _LEAP, _MOMENT)),
            (1, (1, 1, 1.0, "a", True, _HALF, _LEAP, _MOMENT)),
            (2, (2, 3, math.nan, "ab", False, _TWO, _NEXT, None)),
            (2, (None, 0, -0.0, None, None, None, None, _MOMENT)),
            (3, (None, None, None, "a%", True, _HALF, None, None)),
            (4, (0, -2, math.nan, "", None, Decimal("-1.25"), _LEAP, _MOMENT)),
            (4, (2, 3, 0.0, "b_a", False, _TWO, _NEXT, None)),
            (6, (1, None, 2.5, "B", True, Decimal("0.00"), _NEXT, _MOMENT)),
        ),
        "b": _stream(
            (1, (1, 1, "a", 1.0, _HALF)),
            (2, (2, 0, "", None, None)),
            (2, (1, 3, "ab", 0.25, _TWO)),
            (5, (1, 1, "a", 1.0, _HALF)),
            (5, (0, -2, "B", -1.5, Decimal("-1.25"))),
        ),
        "c": _stream(
            (2, (1, 0.25, "a", True, _LEAP, _MOMENT)),
            (3, (None, None, None, False, None, None)),
            (4, (1, 1.0, "ab", False, _NEXT, None)),
        ),
    },
    {
        "r": [(1, "a", _HALF, True), (2, "ab", None, None), (None, None, _TWO, False)],
        "p": [(1, 1.0, 0, 3), (2, 2.5, None, 4), (1, None, 2, None), (None, 1.0, 3, 5)],
    },
)

TRAPS = {
    "NOT IN a set with NULL": """
        SELECT k FROM a [RANGE 9] WHERE k NOT IN (SELECT k FROM r)""",
    "NOT IN a set without NULL, from NULL": """
        SELECT k FROM a [RANGE 9] WHERE k NOT IN (SELECT k FROM b [RANGE 2])""",
    "NOT IN nothing": """
        SELECT k FROM a [RANGE 9] WHERE k NOT IN (SELECT k FROM c [RANGE 9] WHERE k > 100)""",
    "NOT IN with NULL as a value": """
        SELECT k, k NOT IN (SELECT k FROM r) AS q FROM a [RANGE 9]""",
    "NOT IN under OR": """
        SELECT k FROM a [RANGE 9] WHERE k NOT IN (SELECT k FROM r) OR i = 3""",
    "NOT (IN)": """
        SELECT k FROM a [RANGE 9] WHERE NOT (k IN (SELECT k FROM r))""",
    "IN a list with NULL": """
        SELECT k, k IN (1, NULL), k NOT IN (0, NULL) FROM a [RANGE 9]""",
    "ALL over nothing": """
        SELECT k FROM a [RANGE 9] WHERE k > ALL (SELECT k FROM b [RANGE 1] WHERE k > 100)""",
    "ANY over nothing": """
        SELECT k, k > ANY (SELECT k FROM b [RANGE 9] WHERE k > 100) AS q FROM a [RANGE 9]""",
    "ALL with NULLs": """
        SELECT k, x >= ALL (SELECT x FROM b [RANGE 9]) AS q FROM a [RANGE 9]""",
    "<> ANY of several values": """
        SELECT k, k <> ANY (SELECT k FROM b [RANGE 9]) AS q FROM a [RANGE 9]""",
    "= ALL of several values": """
        SELECT k, k = ALL (SELECT k FROM b [RANGE 4]) AS q FROM a [RANGE 9]""",
    "quantified, correlated, as a value": """
        SELECT k, i < ANY (SELECT b.i FROM b [RANGE 9] WHERE b.k = a.k) AS q FROM a [RANGE 9]""",
    "a scalar subquery without a row is NULL": """
        SELECT k, (SELECT MAX(x) FROM b [RANGE 1]) AS q FROM a [RANGE 9]""",
    "COUNT in a scalar subquery without rows is NULL": """
        SELECT k, (SELECT COUNT(*) FROM b [RANGE 3] WHERE b.k = a.k) AS n FROM a [RANGE 9]""",
    "a comparison with an empty scalar subquery": """
        SELECT k FROM a [RANGE 9] WHERE k <> (SELECT MAX(k) FROM b [RANGE 1])""",
    "NOT of a comparison with an empty scalar subquery": """
        SELECT k FROM a [RANGE 9] WHERE NOT k = (SELECT MAX(k) FROM b [RANGE 1])""",
    "IS NULL of an empty scalar subquery": """
        SELECT k FROM a [RANGE 9] WHERE (SELECT MAX(k) FROM b [RANGE 1]) IS NULL""",
    "COALESCE of an empty scalar subquery": """
        SELECT k FROM a [RANGE 9] WHERE k >= COALESCE((SELECT MAX(k) FROM b [RANGE 1]), 1)""",
    "COUNT over nothing is absent": """
        SELECT COUNT(*), SUM(k) FROM a [RANGE 1]""",
    "EXISTS of an aggregate over nothing": """
        SELECT k FROM a [RANGE 9] WHERE EXISTS (SELECT COUNT(*) FROM b [RANGE 1])""",
    "aggregates over NULLs only": """
        SELECT COUNT(*), COUNT(i), SUM(i), AVG(i), MIN(i), BOOL_AND(f) FROM a [RANGE 9]
        WHERE k IS NULL""",
    "HAVING without GROUP BY": """
        SELECT MAX(k) FROM a [RANGE 9] HAVING COUNT(*) > 3""",
    "HAVING with an aggregate that is not selected": """
        SELECT k FROM a [RANGE 9] GROUP BY k HAVING SUM(i) > 1 OR COUNT(*) > 1""",
    "an alias that is also a column is the column in GROUP BY": """
        SELECT i AS k, COUNT(*) FROM a [RANGE 9] GROUP BY k, i""",
    "an alias that is no column in GROUP BY": """
        SELECT i + 1 AS j, COUNT(*) FROM a [RANGE 9] GROUP BY j""",
    "GROUP BY a position": """
        SELECT k IS NULL, COUNT(*) FROM a [RANGE 9] GROUP BY 1""",
    "an expression of a grouped expression": """
        SELECT (i + 1) * 2 AS j, COUNT(*) FROM a [RANGE 9] GROUP BY i + 1""",
    "NULLs are one group": """
        SELECT k, s, COUNT(*) FROM a [RANGE 9] GROUP BY k, s""",
    "NaN and zeros are one group each": """
        SELECT x, COUNT(*), COUNT(DISTINCT x) FROM a [RANGE 9] GROUP BY x""",
    "NaN and zeros in DISTINCT": """
        SELECT DISTINCT x FROM a [RANGE 9]""",
    "NaN in set operations": """
        SELECT x FROM a [RANGE 9] EXCEPT ALL SELECT x FROM a [RANGE 3]""",
    "NaN is the greatest number": """
        SELECT MAX(x), MIN(x), BOOL_OR(x > 1e300) FROM a [RANGE 9]""",
    "NaN equals itself in a join": """
        SELECT t.k, u.k FROM a [RANGE 9] t JOIN a [RANGE 3] u ON t.x = u.x""",
    "partitions of NaN and NULL": """
        SELECT k, x FROM a [PARTITION BY x ROWS 1]""",
    "FULL JOIN USING and *": """
        SELECT * FROM a [RANGE 4] FULL JOIN r USING (k)""",
    "RIGHT JOIN USING": """
        SELECT k, a.k, r.k, a.i FROM a [RANGE 2] RIGHT JOIN r USING (k)""",
    "USING of two columns, and then of one": """
        SELECT * FROM a [RANGE 4] JOIN b [RANGE 9] USING (k, s) LEFT JOIN p USING (k)""",
    "FULL JOIN USING twice": """
        SELECT k FROM b [RANGE 2] FULL JOIN c [RANGE 2] USING (k) FULL JOIN p USING (k)""",
    "USING of different types": """
        SELECT * FROM c [RANGE 4] JOIN p USING (k)""",
    "comma before RIGHT JOIN": """
        SELECT b.k, p.k, r.k FROM b [RANGE 2], p RIGHT JOIN r ON p.k = r.k""",
    "WHERE above an outer join": """
        SELECT b.k, p.x FROM b [RANGE 9] LEFT JOIN p ON b.k = p.k WHERE p.x IS NULL OR p.x > b.x""",
    "ON of an outer join, one side only": """
        SELECT b.k, p.x FROM b [RANGE 9] LEFT JOIN p ON b.k = p.k AND b.i = 1""",
    "an inner and an outer table of the same name": """
        SELECT k FROM a [RANGE 2] WHERE EXISTS (SELECT * FROM a [RANGE 9] WHERE a.k = 0)""",
    "an inner alias hides an outer one": """
        SELECT k FROM a [RANGE 9] t WHERE i = (SELECT MAX(t.i) FROM b [RANGE 9] t)""",
    "an inner column hides an outer one": """
        SELECT k FROM a [RANGE 9] WHERE EXISTS (
            SELECT * FROM b [RANGE 9] WHERE k = a.k AND i = 1)""",
    "a stream's own name beside its alias": """
        SELECT a.k, t.i FROM a [RANGE 9] AS t WHERE EXISTS (
            SELECT 1 FROM r AS u WHERE r.k = a.k)""",
    "three levels": """
        SELECT k FROM a [RANGE 9] WHERE k IN (
            SELECT k FROM b [RANGE 9] WHERE b.i = a.i AND EXISTS (
                SELECT * FROM r WHERE r.k = b.k AND r.m = (SELECT MIN(m) FROM b [RANGE 9])))""",
    "a subquery in CASE": """
        SELECT CASE WHEN k IN (SELECT k FROM r) THEN 'r' WHEN EXISTS (SELECT 1 FROM b) THEN 'b' END
        FROM a [RANGE 9]""",
    "a correlated inequality": """
        SELECT k, x FROM a [RANGE 9] WHERE NOT EXISTS (
            SELECT * FROM b [RANGE 9] WHERE b.k <= a.k AND b.x <> a.x)""",
    "a subquery compared in HAVING": """
        SELECT k, COUNT(*) FROM a [RANGE 9] GROUP BY k
        HAVING COUNT(*) >= ALL (SELECT COUNT(*) FROM a [RANGE 9] GROUP BY k)""",
    "a scalar subquery beside an aggregate": """
        SELECT k, SUM(i) - (SELECT MIN(i) FROM b [RANGE 9]) AS q FROM a [RANGE 9] GROUP BY k""",
    "multiplicities of EXCEPT ALL": """
        SELECT k FROM a [RANGE 9] EXCEPT ALL SELECT k FROM b [RANGE 2]""",
    "EXCEPT keeps each row once": """
        SELECT k FROM a [RANGE 9] EXCEPT SELECT k FROM c [RANGE 9]""",
    "multiplicities of INTERSECT ALL": """
        SELECT k FROM a [RANGE 9] INTERSECT ALL SELECT k FROM b [RANGE 9]""",
    "INTERSECT binds tighter": """
        SELECT k FROM a [RANGE 9] UNION ALL SELECT k FROM b [RANGE 9] INTERSECT SELECT k FROM r""",
    "set operations of different types": """
        SELECT k, m FROM a [RANGE 9] UNION SELECT i, x FROM b [RANGE 9]""",
    "numbers of different types": """
        SELECT m = k, m < x, k >= x, i = m, 1 = 1.0, 0.1 + 0.2 = 0.3, 0.1e0 + 0.2e0 = 0.3e0
        FROM a [RANGE 9]""",
    "dates and timestamps": """
        SELECT d < z, d = '2020-02-29', z >= DATE '2020-02-29', d + 1 > d, z - INTERVAL '1' DAY < z
        FROM a [RANGE 9]""",
    "LIKE with an escape": r"""
        SELECT s, s LIKE 'a!%' ESCAPE '!', s LIKE '%\_%' ESCAPE '\', s NOT LIKE '_!_%' ESCAPE '!'
        FROM a [RANGE 9]""",
    "division": """
        SELECT k / i, k // i, k % i, i / 0, -7 // 2, -7 % 2, x / 0 FROM a [RANGE 9]""",
    "unknown is not false": """
        SELECT f AND NULL, f OR NULL, NOT f, f IS TRUE, f IS NOT FALSE, f = f FROM a [RANGE 9]""",
    "BETWEEN with NULL": """
        SELECT k BETWEEN NULL AND 0, k NOT BETWEEN 1 AND NULL FROM a [RANGE 9]""",
    "a window over a view keeps the order of the stream": """
        SELECT * FROM v [ROWS 2]""",
    "a window over groups counts in the order of the values": """
        SELECT * FROM (SELECT k, COUNT(*) AS n FROM a [RANGE 3] GROUP BY k) [ROWS 3 SLIDE 2] q""",
    "a window over a window counts instants": """
        SELECT k, COUNT(*) FROM (SELECT k FROM a [RANGE 3]) [RANGE 4] q GROUP BY k""",
    "a window over changes": """
        SELECT * FROM ISTREAM(SELECT k, COUNT(*) AS n FROM b [RANGE 3] GROUP BY k) [RANGE 4] q""",
    "a name of WITH used twice, once under a window": """
        WITH q AS (SELECT k, x FROM a [RANGE 2])
        SELECT t.k, u.x FROM q t JOIN q [ROWS 2] u ON t.k = u.k""",
    "a name of WITH that hides a stream": """
        WITH a AS (SELECT k FROM a [RANGE 3]) SELECT * FROM a [RANGE 2]""",
    "a window that moves every third instant": """
        SELECT k, i FROM a [RANGE 5 SLIDE 3]""",
    "a window that moves every third row of a group": """
        SELECT k, i FROM b [PARTITION BY k ROWS 3 SLIDE 2]""",
    "sessions of NaN and NULL": """
        SELECT x, COUNT(*), MAX(k) FROM a [PARTITION BY x SESSION 1] GROUP BY x""",
    "a session over changes": """
        SELECT * FROM ISTREAM(SELECT k, COUNT(*) AS n FROM b [RANGE 3] GROUP BY k) [SESSION 1] q""",
    "a window over a union counts in the order of the values": """
        SELECT * FROM (SELECT k, i FROM a UNION ALL SELECT k, i FROM b) [ROWS 3] q""",
    "a window over changes of a relation": """
        SELECT * FROM ISTREAM(p) [RANGE 3] q""",
    "a window over a join of the same names": """
        SELECT * FROM (SELECT * FROM b [RANGE 9] JOIN r ON b.k = r.k) [ROWS 2] q""",
    "rows in a set of rows with NULL": """
        SELECT k, s FROM a [RANGE 9] WHERE (k, s) IN (SELECT k, s FROM r)""",
    "rows not in a set of rows with NULL": """
        SELECT k, s FROM a [RANGE 9] WHERE (k, s) NOT IN (SELECT k, s FROM r)""",
    "a scalar subquery that has one row by its key": """
        SELECT k, (SELECT t.x FROM a [PARTITION BY k ROWS 1] t WHERE t.k = b.k) AS q
        FROM b [RANGE 9]""",
    "a scalar subquery that has one row by its groups": """
        SELECT b.k FROM b [RANGE 9] WHERE b.i >= (
            SELECT t.n FROM (SELECT k, COUNT(*) AS n FROM a [RANGE 5] GROUP BY k) t
            WHERE t.k = b.k)""",
    "groups in a correlated subquery": """
        SELECT k FROM a [RANGE 9] WHERE x IN (
            SELECT MAX(x) FROM b [RANGE 9] WHERE b.k = a.k GROUP BY i HAVING COUNT(*) > 0)""",
    "NOT IN of a value that an outer join leaves open": """
        SELECT r.k, b.k FROM r LEFT JOIN b [RANGE 9] ON r.k = b.k
        WHERE b.k NOT IN (SELECT i FROM b [RANGE 9])""",
    "NOT IN of a division by zero": """
        SELECT k FROM b [RANGE 9] WHERE k // i NOT IN (SELECT k + 5 FROM b [RANGE 9])""",
    "<> ALL of a cast that fails": """
        SELECT k FROM b [RANGE 9] WHERE CAST(s AS INTEGER) <> ALL (SELECT k FROM b [RANGE 9])""",
    "an outer column in the SELECT list of a subquery": """
        SELECT k, x FROM a [RANGE 9] WHERE x IN (
            SELECT b.x + a.i - 1 FROM b [RANGE 9] WHERE b.k = a.k)""",
    "an outer column in the SELECT list of ALL": """
        SELECT k, i FROM a [RANGE 9] WHERE i > ALL (SELECT a.k + b.i FROM b [RANGE 9])""",
    "HAVING in a correlated subquery": """
        SELECT k FROM a [RANGE 9] WHERE EXISTS (
            SELECT 1 FROM b [RANGE 9] WHERE b.k = a.k HAVING COUNT(*) > 1)""",
    "a correlation under OR": """
        SELECT k FROM a [RANGE 9] WHERE NOT EXISTS (
            SELECT 1 FROM b [RANGE 9] WHERE b.k = a.k OR b.i = a.i)""",
    "a correlation by an expression of both": """
        SELECT k FROM a [RANGE 9] WHERE k NOT IN (
            SELECT b.k FROM b [RANGE 9] WHERE b.k + a.k = 2)""",
    "a correlation that names no inner column": """
        SELECT k, EXISTS (SELECT b.k FROM b [RANGE 9] WHERE a.k = 1) AS q FROM a [RANGE 9]""",
    "two scalar subqueries in one condition": """
        SELECT k FROM a [RANGE 9]
        WHERE k BETWEEN (SELECT MIN(k) FROM b [RANGE 9]) AND (SELECT MAX(i) FROM b [RANGE 9])""",
    "IS NULL of a subquery that is unknown": """
        SELECT k FROM a [RANGE 9] WHERE (k IN (SELECT k FROM r)) IS NULL""",
    "conditions over several items of FROM": """
        SELECT t.k, u.i FROM a [RANGE 9] t, b [RANGE 9] u LEFT JOIN c [RANGE 9] w ON u.k = w.k
        WHERE t.k = w.k OR w.k IS NULL""",
    "an outer join under an inner one": """
        SELECT t.k, u.i FROM a [RANGE 5] t LEFT JOIN b [RANGE 5] u ON t.k = u.k
        JOIN c [RANGE 9] w ON u.i = w.k OR u.k IS NULL""",
    "an alias that hides the column it is made of": """
        SELECT UPPER(s) AS s, COUNT(*) FROM a [RANGE 9] GROUP BY s""",
    "a set operation in a subquery": """
        SELECT k, k IN (SELECT k FROM b [RANGE 5] EXCEPT SELECT k FROM r) AS q FROM a [RANGE 9]""",
    "CASE of NULL": """
        SELECT CASE k WHEN NULL THEN 1 WHEN 1 THEN 2 ELSE 3 END FROM a [RANGE 9]""",
    "WHERE NULL": """
        SELECT k FROM a [RANGE 9] WHERE NULL""",
    "names in any case": """
        SELECT K, T.I FROM A [RANGE 9] t""",
    "intervals with a fraction": """
        SELECT z + INTERVAL '1.5' HOURS, d - INTERVAL '0.5' DAYS FROM a [RANGE 9]""",
    "DSTREAM of a temporal relation": """
        DSTREAM(SELECT k, x FROM p)""",
    "functions of people": """
        SELECT twice(i), tagged(s, x), twice(twice(k)) FROM a [RANGE 9]""",
}
