"""The auction example of the PIPES thesis: its streams, and a session that knows them."""

from __future__ import annotations

import tidemill

__all__ = ["DECLARATIONS", "auction_session"]

DECLARATIONS = """
CREATE STREAM OpenAuction (itemID BIGINT, sellerID BIGINT, start_price DOUBLE, at TIMESTAMP)
  SOURCE memory('open') ORDERED BY at;
CREATE STREAM ClosedAuction (itemID BIGINT, buyerID BIGINT, at TIMESTAMP)
  SOURCE memory('closed') ORDERED BY at;
CREATE STREAM Bid (itemID BIGINT, bid_price DOUBLE, bidderID BIGINT, at TIMESTAMP)
  SOURCE memory('bid') ORDERED BY at;
CREATE RELATION Person (id BIGINT NOT NULL, name VARCHAR, city VARCHAR) SOURCE csv('person.csv');
CREATE RELATION Category (id BIGINT NOT NULL, name VARCHAR, since BIGINT, until BIGINT)
  SOURCE csv('category.csv') VALID FROM since TO until;
CREATE FUNCTION DolToEuro(dollars DOUBLE) AS dollars * 0.9;
CREATE STREAM CurrentPrice AS
  SELECT P.itemID, P.price, O.sellerID AS sellerID
  FROM ((SELECT itemID, bid_price AS price FROM Bid WINDOW(RANGE 2 DAYS))
        UNION ALL
        (SELECT itemID, start_price AS price FROM OpenAuction WINDOW(RANGE 2 DAYS))) P,
       ClosedAuction C,
       OpenAuction O WINDOW(RANGE 2 DAYS)
  WHERE P.itemID = C.itemID AND C.itemID = O.itemID;
CREATE STREAM ClosingPriceStream AS
  SELECT itemID, sellerID, MAX(P.price) AS price
  FROM CurrentPrice P
  GROUP BY P.itemID, P.sellerID;
"""


def auction_session(engine: str = "local") -> tidemill.Session:
    """A session in which the streams, relations and views of the example are registered."""
    session = tidemill.connect(engine=engine)
    session.sql(DECLARATIONS)
    return session
