"""Links by templates: what is filled in, and what is refused when the page starts."""

import pytest
from click.testing import CliRunner

from cli.__main__ import main
from cli.endings import WRONG_USE, Unusable
from cli.page.reading.links import read_links


def test_a_template_is_filled_with_the_names_of_the_cluster() -> None:
    (link,) = read_links(["grafana=https://g.example.com/d/ray?ns={namespace}&cluster={name}"])
    assert link.name == "grafana"
    assert link.address("team", "a b&x=/..") == (
        "https://g.example.com/d/ray?ns=team&cluster=a%20b%26x%3D%2F.."
    )


@pytest.mark.parametrize(
    ("said", "allowed"),
    [
        ("https://g.example.com", "NAME=TEMPLATE"),
        ("a b=https://g.example.com", "NAME=TEMPLATE"),
        ("g=javascript:alert(1)//{name}", "begins with http:// or https://"),
        ("g=data:text/html,x", "begins with http:// or https://"),
        ("g=//g.example.com/{name}", "begins with http:// or https://"),
        ("g=https:///d/{name}", "begins with http:// or https://"),
        ("g={name}://g.example.com", "begins with http:// or https://"),
        ("g=https://u:p@g.example.com", "without user and password"),
        ("g=https://g.example.com/{uid}", "{namespace} and {name}"),
        ("g=https://g.example.com/{name", "{namespace} and {name}"),
        ("g=https://g.example.com:99999/", "an address"),
        ("g=https://g.example.com/\x01", "control characters"),
        ("g=https://g.example.com\\@evil", "backslashes"),
    ],
)
def test_a_bad_one_is_refused_with_what_is_allowed(said: str, allowed: str) -> None:
    with pytest.raises(Unusable) as refused:
        read_links([said])
    assert ascii(said) in str(refused.value)
    assert allowed in str(refused.value)
    assert str(refused.value).startswith("MUSTER_LINKS")


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (("--link", "g=javascript:alert(1)"), {}),
        ((), {"MUSTER_LINKS": "ok=https://g.example.com/{name}\n  g=javascript:alert(1)"}),
    ],
)
def test_the_page_does_not_start_with_a_bad_one(
    arguments: tuple[str, ...], environment: dict[str, str]
) -> None:
    done = CliRunner().invoke(main, ["dashboard", *arguments], env=environment)
    assert done.exit_code == WRONG_USE
    assert done.stderr.startswith("Error: MUSTER_LINKS or --link: 'g=javascript:alert(1)'; allowed")
    assert done.stderr.count("\n") == 1
