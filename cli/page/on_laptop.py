"""Makes the page that a person serves to themselves, on their own machine."""

from aiohttp import web

from cli.page.feed import Feed
from cli.page.reading.links import Link
from cli.page.reading.routes import LINKS
from cli.page.safety.callers import OnLaptop
from cli.page.safety.guards import of_this_machine, only_our_writes
from cli.page.server import application
from kube.api.client import Client


def laptop_page(
    client: Client, namespace: str, secret: str, feed: Feed, links: tuple[Link, ...] = ()
) -> web.Application:
    """Return the page; whoever has the secret writes with the rights of the client."""
    guards = [of_this_machine, only_our_writes("http", secret)]
    page = application(OnLaptop(client, namespace), guards, feed)
    page[LINKS] = links
    return page
