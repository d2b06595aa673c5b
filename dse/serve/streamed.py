"""Long responses sent from an unnamed temporary file, so that slow clients occupy no memory."""

from __future__ import annotations

import base64
import hashlib
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from dse.serve.middleware import PIECE_BYTES


def build_stream_response(
    content: bytes | Iterable[str], media: str, headers: Mapping[str, str]
) -> Response:
    """Return a response that is sent from a temporary file with this content."""
    return _Held(content, media_type=media, headers=headers)


class _Held(StreamingResponse):
    """Response sent from a temporary file.

    The file is closed at the end, even if the client disconnects before the first byte.
    """

    def __init__(
        self, content: bytes | Iterable[str], media_type: str, headers: Mapping[str, str]
    ) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the response ends
        whole = [content] if isinstance(content, bytes) else (text.encode() for text in content)
        self._file.writelines(whole)
        length = {"content-length": str(self._file.tell())}
        self._file.seek(0)
        pieces = iter(lambda: self._file.read(PIECE_BYTES), b"")
        super().__init__(pieces, media_type=media_type, headers={**headers, **length})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._file.close()


def shown(text: str) -> Response:
    """Return the response for a report's HTML page, sandboxed by a content security policy.

    Only the page's own two scripts may run, without access to the server's origin.
    """
    scripts = " ".join(f"'sha256-{digest}'" for digest in _digests())
    policy = (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline';"
        " img-src data: blob:; form-action 'none'; base-uri 'none'; frame-ancestors 'none';"
        " sandbox allow-scripts allow-downloads"
    )
    headers = {"content-security-policy": policy}
    return build_stream_response(text.encode(), "text/html; charset=utf-8", headers)


@cache
def _digests() -> Sequence[str]:
    """Return the base64 SHA-256 digests of a report's two scripts, for the security policy."""
    from plotly.offline import get_plotlyjs

    own = files("dse.report.html").joinpath("page.js").read_text("utf-8")
    scripts = (get_plotlyjs(), f"\n{own}\n")
    return [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts]
