"""Assembly of the web application: its routes, behind the request middleware."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from dse import __version__
from dse.protocols import Storage
from dse.serve import api, downloads
from dse.serve import static_files as assets_routes
from dse.serve.access import AccessRules
from dse.serve.context import ServerContext
from dse.serve.errors import add_refusals
from dse.serve.middleware import RequestMiddleware
from dse.serve.pages import views


def application(storage: str | Storage, gate: AccessRules) -> FastAPI:
    """Return the web application for the studies of a storage.

    Args:
        storage: a storage or its URL.
        gate: the rules for reading and changing.
    """
    house = ServerContext.of(storage, gate)

    @asynccontextmanager
    async def lived_in(_: FastAPI) -> AsyncIterator[None]:
        yield
        house.close()

    app = FastAPI(
        title="dse",
        version=__version__,
        description="The studies of a storage: show, run, pause and extend them.",
        openapi_url="/api/openapi.json",
        docs_url=None,  # that page loads scripts from another site
        redoc_url=None,
        lifespan=lived_in,
    )
    app.state.house = house
    add_refusals(app)
    for router in (api.router, api.changing, views.router, downloads.router, assets_routes.router):
        app.include_router(router)
    app.add_middleware(RequestMiddleware, gate=gate, requests=house.requests, streams=house.streams)
    return app
