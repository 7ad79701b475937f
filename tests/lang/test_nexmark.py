"""The queries of the NEXMark benchmark, as Krämer writes them."""

from __future__ import annotations

from tidemill.lang import parse, unparse

NEXMARK = """
SELECT itemID, DolToEuro(bid_price), bidderID
FROM Bid;

SELECT Bid.*
FROM Bid
WHERE itemID = 1007 OR itemID = 1020
      OR itemID = 2001 OR itemID = 2019
      OR itemID = 1087;

SELECT OpenAuction.*
FROM OpenAuction O WINDOW(RANGE 5 HOURS),
     ClosedAuction C
WHERE O.itemID = C.itemID;

SELECT itemID, bid_price
FROM Bid WINDOW(RANGE 10 MINUTES)
WHERE bid_price = (SELECT MAX(bid_price)
                   FROM BID WINDOW(RANGE 10 MINUTES));

CREATE STREAM CurrentPrice AS
    SELECT P.itemID, P.price, O.sellerID AS sellerID
    FROM ((SELECT itemID, bid_price AS price
           FROM Bid WINDOW(RANGE 2 DAYS))
          UNION ALL
          (SELECT itemID, start_price AS price
           FROM OpenAuction WINDOW(RANGE 2 DAYS))) P,
         ClosedAuction C,
         OpenAuction O WINDOW(RANGE 2 DAYS)
    WHERE P.itemID = C.itemID AND C.itemID = O.itemID;

CREATE STREAM ClosingPriceStream AS
    SELECT itemID, sellerID, MAX(P.price) AS price
    FROM CurrentPrice P
    GROUP BY P.itemID, P.sellerID;

SELECT itemID
FROM (SELECT B1.itemID AS itemID, COUNT(*) AS num
      FROM Bid [RANGE 60 MINUTES] B1
      GROUP BY B1.itemID)
WHERE num >= ALL(SELECT COUNT(*)
                 FROM Bid [RANGE 60 MINUTES] B2
                 GROUP BY B2.itemID);

SELECT sellerID, AVG(price)
FROM ClosingPriceStream WINDOW(PARTITION BY sellerID ROWS 10)
GROUP BY sellerID;
"""


def test_the_nexmark_queries() -> None:
    assert [unparse(statement) for statement in parse(NEXMARK)] == [
        "SELECT itemID, DolToEuro(bid_price), bidderID FROM Bid",
        (
            "SELECT Bid.* FROM Bid WHERE itemID = 1007 OR itemID = 1020 OR itemID = 2001"
            " OR itemID = 2019 OR itemID = 1087"
        ),
        (
            "SELECT OpenAuction.* FROM OpenAuction [RANGE 5 HOURS] AS O, ClosedAuction AS C"
            " WHERE O.itemID = C.itemID"
        ),
        (
            "SELECT itemID, bid_price FROM Bid [RANGE 10 MINUTES] WHERE bid_price ="
            " (SELECT MAX(bid_price) FROM BID [RANGE 10 MINUTES])"
        ),
        (
            "CREATE STREAM CurrentPrice AS SELECT P.itemID, P.price, O.sellerID AS sellerID FROM"
            " ((SELECT itemID, bid_price AS price FROM Bid [RANGE 2 DAYS]) UNION ALL"
            " (SELECT itemID, start_price AS price FROM OpenAuction [RANGE 2 DAYS])) AS P,"
            " ClosedAuction AS C, OpenAuction [RANGE 2 DAYS] AS O"
            " WHERE P.itemID = C.itemID AND C.itemID = O.itemID"
        ),
        (
            "CREATE STREAM ClosingPriceStream AS SELECT itemID, sellerID, MAX(P.price) AS price"
            " FROM CurrentPrice AS P GROUP BY P.itemID, P.sellerID"
        ),
        (
            "SELECT itemID FROM (SELECT B1.itemID AS itemID, COUNT(*) AS num"
            " FROM Bid [RANGE 1 HOUR] AS B1 GROUP BY B1.itemID)"
            " WHERE num >= ALL(SELECT COUNT(*) FROM Bid [RANGE 1 HOUR] AS B2 GROUP BY B2.itemID)"
        ),
        (
            "SELECT sellerID, AVG(price) FROM ClosingPriceStream [PARTITION BY sellerID ROWS 10]"
            " GROUP BY sellerID"
        ),
    ]
