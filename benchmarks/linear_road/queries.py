"""Linear Road in Tidemill's language: views that build on each other, and a query for each answer.

Reports come at whole seconds. A window that slides by a minute moves one microsecond before the
full minute; what it holds at any second of minute m are the reports of minute m - 1.

Q1  Position reports: input of type 0.

Q2  Accidents. A car is stopped while its last four reports name one place (expressway, direction,
    segment, lane, position), whatever lies between them in time. An accident is a place with two
    stopped cars or more, from the instant of the report that makes it so up to that of the first
    report from elsewhere that leaves fewer. A car that sends nothing more stays where it was.

Q3  Entries: reports of a car that it did not send from an exit ramp, and whose report before, if
    there is one, was from another expressway, direction or segment. A car that comes back to the
    segment it has left the road from does not enter it anew.

Q4  Statistics of a segment and minute: the mean over cars of each car's mean speed there, and the
    number of cars. They are there for the minute after. A segment without reports has none.

Q5  Tolls of minute m, for every segment that has statistics of minute m - 1. The speed is the mean
    of the minutes m - 5 to m - 1, of those that have statistics. The toll is 2 · (cars - 50)² if
    that speed is below 40, the cars of minute m - 1 are more than 50, and no accident was there, in
    the segment itself or the next four ahead, one microsecond before minute m; else it is 0.

Q6  Accident alerts: for every entry, the nearest accident in the segment entered or the next four
    ahead that is there at the instant of the entry, reports of that instant included.

Q7  Toll notices: for every entry, the speed and toll of its segment and minute; 0 if there are
    none. The toll is charged at once, so a segment that is left by its exit ramp is paid for too.

Q8  Balances: for every request of type 2, the sum of the tolls charged to the car, those of the
    same instant included, and the time of the last notice; 0 and NULL if there was none.

Q9  Expenditures: for every request of type 3, what the car has paid on that day and expressway, 0
    if there is nothing in the history.

All means are exact means, rounded once to a DOUBLE; a mean of means is one of the rounded values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.linear_road.rules import BALANCE, EAST, EXIT_LANE, EXPENDITURE, POSITION

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.linear_road.rules import Rules

__all__ = ["QUERIES", "declarations", "views"]

QUERIES = {
    "positions": "SELECT * FROM position",
    "accidents": "SELECT * FROM accident",
    "entries": "SELECT * FROM entry",
    "statistics": "SELECT * FROM statistic",
    "tolls": "SELECT * FROM toll",
    "alerts": "SELECT * FROM alert",
    "notices": "SELECT * FROM notice",
    "balances": "SELECT * FROM balance",
    "expenditures": "SELECT * FROM expenditure",
}
"""The queries Q1 to Q9, by name."""


def declarations(directory: Path, *, files: int = 1) -> str:
    """The statements that declare what ``simulator.write_traffic`` has written.

    Args:
        directory: Where.
        files: How many files are taken at once.
    """
    place = str(directory).replace("'", "''")
    return f"""
CREATE STREAM report (
    at BIGINT, type BIGINT NOT NULL, time BIGINT NOT NULL, carid BIGINT NOT NULL,
    speed BIGINT NOT NULL, exp_way BIGINT NOT NULL, lane BIGINT NOT NULL, dir BIGINT NOT NULL,
    seg BIGINT NOT NULL, pos BIGINT NOT NULL, qid BIGINT NOT NULL, s_init BIGINT NOT NULL,
    s_end BIGINT NOT NULL, dow BIGINT NOT NULL, tod BIGINT NOT NULL, day BIGINT NOT NULL)
  SOURCE parquet('{place}/input', files_per_batch => {files}, settle => 0) ORDERED BY at;
CREATE RELATION history (
    carid BIGINT NOT NULL, day BIGINT NOT NULL, exp_way BIGINT NOT NULL, toll BIGINT NOT NULL)
  SOURCE parquet('{place}/history.parquet', settle => 0);
"""


def views(rules: Rules) -> str:
    """The statements that define the views, over the streams of ``declarations``."""
    return f"""
CREATE FUNCTION ahead(dir BIGINT, seg BIGINT, other BIGINT) AS
  CASE WHEN dir = {EAST} THEN other - seg ELSE seg - other END;

CREATE STREAM position AS
  SELECT at, time, carid, speed, exp_way, lane, dir, seg, pos
  FROM report WHERE type = {POSITION};

CREATE STREAM stopped AS
  SELECT carid, exp_way, dir, seg, lane, pos
  FROM position [PARTITION BY carid ROWS {rules.stopped_reports}]
  GROUP BY carid, exp_way, dir, seg, lane, pos
  HAVING COUNT(*) = {rules.stopped_reports};

CREATE STREAM accident AS
  SELECT exp_way, dir, seg, lane, pos FROM stopped
  GROUP BY exp_way, dir, seg, lane, pos
  HAVING COUNT(*) >= {rules.accident_cars};

CREATE STREAM entry AS
  SELECT p.at, p.time, p.carid, p.exp_way, p.dir, p.seg
  FROM position p
  WHERE p.lane <> {EXIT_LANE} AND NOT EXISTS (
    SELECT * FROM position [PARTITION BY carid ROWS 2] b
    WHERE b.carid = p.carid AND b.exp_way = p.exp_way AND b.dir = p.dir AND b.seg = p.seg
      AND b.at < p.at);

CREATE STREAM statistic AS
  SELECT minute, exp_way, dir, seg, AVG(speed) AS speed, COUNT(*) AS cars
  FROM (SELECT carid, exp_way, dir, seg, MAX(time) // 60 AS minute, AVG(speed) AS speed
        FROM position [RANGE 1 MINUTE SLIDE 1 MINUTE]
        GROUP BY carid, exp_way, dir, seg)
  GROUP BY minute, exp_way, dir, seg;

CREATE STREAM average AS
  SELECT exp_way, dir, seg, AVG(speed) AS speed
  FROM ISTREAM(statistic) [RANGE {rules.average_minutes} MINUTES]
  GROUP BY exp_way, dir, seg;

CREATE STREAM closed AS
  SELECT DISTINCT s.exp_way, s.dir, s.seg
  FROM ISTREAM(statistic) s JOIN accident a USING (exp_way, dir)
  WHERE ahead(s.dir, s.seg, a.seg) BETWEEN 0 AND {rules.zone};

CREATE STREAM toll_of_minute AS
  SELECT s.minute + 1 AS minute, s.exp_way, s.dir, s.seg, v.speed, s.cars,
    CASE WHEN v.speed < {rules.slow_speed} AND s.cars > {rules.free_cars}
          AND NOT EXISTS (SELECT * FROM closed c
                          WHERE c.exp_way = s.exp_way AND c.dir = s.dir AND c.seg = s.seg)
         THEN {rules.toll_factor} * (s.cars - {rules.free_cars}) * (s.cars - {rules.free_cars})
         ELSE 0 END AS toll
  FROM ISTREAM(statistic) s JOIN average v USING (exp_way, dir, seg);

CREATE STREAM toll AS SELECT * FROM toll_of_minute [RANGE 1 MINUTE];

CREATE STREAM alert AS
  SELECT e.time, e.carid, e.exp_way, e.dir, e.seg,
    CASE WHEN e.dir = {EAST} THEN MIN(a.seg) ELSE MAX(a.seg) END AS accident_seg
  FROM entry e JOIN accident a USING (exp_way, dir)
  WHERE ahead(e.dir, e.seg, a.seg) BETWEEN 0 AND {rules.zone}
  GROUP BY e.time, e.carid, e.exp_way, e.dir, e.seg;

CREATE STREAM notice AS
  SELECT e.time, e.carid, e.exp_way, e.dir, e.seg,
    coalesce(t.speed, 0) AS speed, coalesce(t.toll, 0) AS toll
  FROM entry e LEFT JOIN toll t USING (exp_way, dir, seg);

CREATE STREAM account AS
  SELECT carid, SUM(toll) AS balance, MAX(time) AS since
  FROM notice [RANGE UNBOUNDED] GROUP BY carid;

CREATE STREAM balance AS
  SELECT r.time, r.carid, r.qid, coalesce(a.balance, 0) AS balance, a.since
  FROM report r LEFT JOIN account a USING (carid)
  WHERE r.type = {BALANCE};

CREATE STREAM expenditure AS
  SELECT r.time, r.carid, r.qid, r.exp_way, r.day, coalesce(h.toll, 0) AS toll
  FROM report r LEFT JOIN history h USING (carid, day, exp_way)
  WHERE r.type = {EXPENDITURE};
"""
