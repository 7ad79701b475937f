"""Deployments for tests of what is done with a batch, whatever computes it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from tidemill.runtime.spark.driver.delivery import Deployed
from tidemill.runtime.spark.driver.routes import routes_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidemill.runtime.sinks import Sink
    from tidemill.runtime.spark.worker.deployment import Deployment
    from tidemill.runtime.spark.worker.sink_writer import SinkWriter

__all__ = ["deployed_with"]


def deployed_with(
    channels: Mapping[str, str], sinks: Mapping[str, Sink], writer: SinkWriter | None = None
) -> Deployed:
    """What is delivered to some sinks; nothing computes it."""
    routes = routes_of(channels, sinks)
    deployment = SimpleNamespace(
        graph=SimpleNamespace(answers=channels, epoch=0),
        version="v",
        sink_writer=writer or routes.sink_writer(),
    )
    return Deployed(cast("Deployment", deployment), sinks, routes)
