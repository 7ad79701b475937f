"""A restart of the local engine with other settings is a migration, not an error."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import tidemill
from running.settings_body import migrated

if TYPE_CHECKING:
    from pathlib import Path


def test_other_settings_on_a_checkpoint_are_a_migration(tmp_path: Path) -> None:
    migrated(partial(tidemill.connect, checkpoint=tmp_path / "state", partitions=2), tmp_path)
