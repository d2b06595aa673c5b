"""Links of README and the pages lead to files and headings that are there, read on GitHub too."""

import re
from pathlib import Path

import pytest
from typer.main import get_command

from dse.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / room / "README.md" for room in ("evaluators", "spaces", "studies")),
    ]
)
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")
NAMED = re.compile(r"`((?:docs|spaces|studies|evaluators|benchmarks|tests)/[\w/.-]*)`")
COMMAND = re.compile(r"`dse ((?:[a-z][a-z-]*)(?: [a-z][a-z-]*)?)")
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
TOP = get_command(app)


def prose(page):
    return FENCE.sub("", page.read_text())


def slug(heading):
    """The anchor of a heading, as GitHub and the site make it."""
    text = re.sub(r"`|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", text))


def leads_nowhere(page, link):
    file, _, anchor = link.partition("#")
    target = (page.parent / file).resolve() if file else page
    if not target.exists():
        return True
    if not anchor or target.suffix != ".md":
        return False
    return anchor not in {
        slug(one) for one in re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_links_of_a_page_lead_somewhere(page):
    links = [one or other for one, other in LINK.findall(prose(page))]
    inner = [link for link in links if "://" not in link]
    assert [link for link in inner if leads_nowhere(page, link)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_files_that_a_page_names_are_there(page):
    named = {name.rstrip(".") for name in NAMED.findall(prose(page))}
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_that_a_page_names_in_its_text_exist(page):
    def exists(words):
        command = TOP.commands.get(words[0])
        inner = getattr(command, "commands", None)
        return command is not None and (inner is None or len(words) < 2 or words[1] in inner)

    named = [words.split() for words in COMMAND.findall(prose(page))]
    assert [words for words in named if not exists(words)] == []
