"""How join plans are chosen: the experiments of Zhu (E1 to E4) and of Golab (J1 to J5)."""
