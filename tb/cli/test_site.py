"""The site: its faults are seen, and it has none. A browser looks at it in ``make regress``, which installs one."""

import os
import subprocess
import sys

import pytest

from docs import site
from docs.tables import ROOT

GOOD = """<!doctype html><title>a</title><article id="top"><p>text</p><img src="a.svg"><a href="b.html#there">b</a>
<a href="https://example.org">elsewhere</a></article>
<input name="query" oninput="one.hidden = this.value != 'splitter'">
<p class="md-search-result__item" id="one" hidden><a href="b.html">found</a></p>"""
FAULTS = {
    "no c.html": ("b.html#there", "c.html"),
    "no b.html#here": ("#there", "#here"),
    "the picture": ("a.svg", "broken.svg"),
    "Markdown that was not understood": ("text", "| A | b |"),
    "an example of a docstring": ("<p>text</p>", "<table><td>&gt;&gt;&gt; f()</table>"),
    "wider than": ("<p>text</p>", "<p style='width: 500px'>text</p>"),
    "not of the site": ("a.svg", "http://127.0.0.1:1/a.svg"),
    "c.css: 404": ("<title>", "<link rel=stylesheet href=c.css><title>"),
    "the search finds nothing": ("value != 'splitter'", "value"),
}


@pytest.fixture
def browse():
    from docs import browse  # which needs what make sim does not install

    return browse


def pages(folder, text):
    (folder / "index.html").write_text(text)
    (folder / "b.html").write_text("<p id='there'>b</p>")
    (folder / "a.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>")
    (folder / "broken.svg").write_text("<svg")


@pytest.mark.regress
def test_a_browser_sees_each_fault_and_no_other(browse, tmp_path, monkeypatch):
    monkeypatch.setattr(browse, "PATIENCE", 300)
    pages(tmp_path, GOOD)
    with browse.browsing(tmp_path) as (browser, home):
        assert list(browse.faults(browser, tmp_path, home)) == []
        for fault, (old, new) in FAULTS.items():
            assert old in GOOD
            pages(tmp_path, GOOD.replace(old, new))
            assert any(fault in message for message in browse.faults(browser, tmp_path, home)), fault


@pytest.mark.regress
def test_the_site_has_no_faults(browse, tmp_path):
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path)], cwd=ROOT,
                   check=True, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"})
    with browse.browsing(tmp_path) as (browser, home):
        assert list(browse.faults(browser, tmp_path, home)) == []


@pytest.mark.regress
def test_without_chromium_the_command_says_so(browse, tmp_path, monkeypatch):
    monkeypatch.setattr(browse, "chromium", lambda: None)
    with pytest.raises(SystemExit, match="no Chromium"):
        browse.main(tmp_path)


def test_docstrings_are_ordered_as_their_reader_wants_them():
    text = "One.\n\nReturns\n-------\nint\n    Two,\n\n    or three.\n\nRaises.\n\n>>> f()\n2\n\n>>> g()\n"
    assert site.sections(text) == ("One.\n\nRaises.\n\nReturns\n-------\nint\n    Two,\n\n    or three.\n\n"
                                   "Examples\n--------\n>>> f()\n2\n\n>>> g()")
    assert site.sections("One.") == "One."


def test_options_are_not_broken_at_their_hyphens():
    assert site.on_page_content("<code>a --b-c - x-y</code> --d", None, None, None) == (
        '<code>a <span class="option">--b-c</span> - x-y</code> --d')
