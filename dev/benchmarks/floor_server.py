"""`python -m benchmarks.floor_server CERTIFICATE KEY PORT`: the least that can answer a review.

The same HTTP server over TLS as the webhook's, which reads the body and answers a constant.
"""

from __future__ import annotations

import ssl
import sys

from aiohttp import web

_ANSWER = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{}}'


async def _mutate(request: web.Request) -> web.Response:
    await request.read()
    return web.Response(body=_ANSWER, content_type="application/json")


def main(certificate: str, key: str, port: str) -> None:
    """Serve until killed."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    application = web.Application()
    application.router.add_post("/mutate", _mutate)
    application.router.add_get("/readyz", lambda _: _ready())
    web.run_app(application, host="127.0.0.1", port=int(port), ssl_context=context, print=None)


async def _ready() -> web.Response:
    return web.Response(text="ok\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
