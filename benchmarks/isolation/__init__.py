"""Queries that read a window while it moves: which answers they may give, and who schedules them.

A window is a ring of sub-windows. The slide T_j replaces the sub-window j mod n by its version j;
a query reads some of the youngest, one after the other, and slides may come in between. Histories
and their levels of isolation are those of Golab's thesis, chapter 7; time is simulated.
"""
