"""``make site``: looks at every page of the site in headless Chromium, and fails for what a reader would stumble over.

``python -m docs.browse build/site [SHOTS]`` serves the folder, opens each page, and checks that nothing is asked of
another host, nothing is missing, no link inside the site leads nowhere, every picture has been drawn, tables, lists and
examples are those, no page is wider than a small screen, and that the search finds a page. With SHOTS it leaves
pictures of some pages in that folder, light and dark, wide and narrow.
"""

import shutil
import sys
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag

from playwright.sync_api import TimeoutError, sync_playwright

__all__ = ["browsing", "chromium", "faults", "main"]

SHOWN = ("index", "papers/jpeg-act", "architecture", "timing", "ratios", "units", "reference", "registers")
PATIENCE, TRIES = 20_000, 10  # ms to find something in all tries
SIZES = {"wide": (1400, 900), "narrow": (390, 844)}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def faults(browser, folder, home):
    """What is wrong, a sentence each."""
    page, statuses = browser.new_page(viewport=dict(zip(("width", "height"), SIZES["narrow"], strict=True))), {}
    page.on("response", lambda response: statuses.update({response.url: response.status}))
    page.on("requestfailed", lambda request: statuses.setdefault(request.url, 0))
    anchors, links = {}, []
    for path in sorted(folder.rglob("*.html")):
        name = str(path.relative_to(folder))
        page.goto(f"{home}/{name}")
        anchors[name] = set(page.eval_on_selector_all("[id]", "all => all.map(one => one.id)"))
        links += [(name, link) for link in page.eval_on_selector_all("a[href]", "all => all.map(one => one.href)")]
        for source in page.evaluate("""async () => {
                const all = [...document.images];
                all.forEach(one => { one.loading = "eager" });
                await Promise.all(all.map(one => one.decode().catch(() => 0)));
                return all.filter(one => !one.naturalWidth).map(one => one.src) }"""):
            yield f"{name}: the picture {source} is not drawn"
        if raw := page.evaluate("""() => [...document.querySelectorAll("article p")].map(one => one.innerText)
                .filter(text => /^(\\||- |```|:::|!\\[)|\\n(\\||- )/.test(text))"""):
            yield f"{name}: Markdown that was not understood: {raw[0][:60]!r}"
        if page.evaluate("""() => [...document.querySelectorAll("article td, article blockquote blockquote")]
                .some(one => one.innerText.startsWith(">>>") || one.matches("blockquote"))"""):
            yield f"{name}: an example of a docstring that was not understood"
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            yield f"{name}: wider than {SIZES['narrow'][0]} pixels"
    for name, link in links:
        target, anchor = urldefrag(link)
        if not target.startswith(home):
            continue
        other = unquote(target[len(home) + 1:]) or "index.html"
        if not (folder / other).is_file():
            yield f"{name}: no {other}"
        elif anchor and other in anchors and unquote(anchor) not in anchors[other]:
            yield f"{name}: no {other}#{anchor}"
    for url, status in statuses.items():
        if not url.startswith((home, "data:", "blob:")):
            yield f"{url}: not of the site"
        elif not 0 < status < 400:
            yield f"{url}: {status or 'no answer'}"
    page.set_viewport_size(dict(zip(("width", "height"), SIZES["wide"], strict=True)))
    page.goto(f"{home}/index.html")
    query = page.locator("input[name=query]")
    for _ in range(TRIES):  # the page may not listen yet, neither to the focus, which opens the search, nor to the text
        query.blur()
        for text in "", "splitter":
            query.fill(text)
        try:
            page.wait_for_selector(".md-search-result__item a", timeout=PATIENCE / TRIES)
            break
        except TimeoutError:
            continue
    else:
        yield "the search finds nothing"
    page.close()


def shots(browser, home, folder):
    """Pictures of pages."""
    folder.mkdir(parents=True, exist_ok=True)
    for scheme in ("light", "dark"):
        for size, (width, height) in SIZES.items():
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            for name in SHOWN:
                page.goto(f"{home}/{name}.html")
                page.wait_for_timeout(300)
                page.screenshot(path=folder / f"{name.replace('/', '-')}-{scheme}-{size}.png")
            page.close()


def chromium():
    """Where it is, or None."""
    return shutil.which("chromium") or shutil.which("google-chrome")


@contextmanager
def browsing(folder):
    """A browser, and where the folder's pages are served."""
    if not chromium():
        sys.exit("there is no Chromium to look at the site with: install chromium or google-chrome")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
            yield browser, f"http://127.0.0.1:{server.server_port}"
            browser.close()
    finally:
        server.shutdown()
        server.server_close()


def main(folder, pictures=None):
    folder = Path(folder)
    with browsing(folder) as (browser, home):
        wrong = list(faults(browser, folder, home))
        if pictures:
            shots(browser, home, Path(pictures))
    if wrong:
        sys.exit("\n".join(dict.fromkeys(wrong)))
    print(f"{len(list(folder.rglob('*.html')))} pages: links, pictures and search are as they should be")


if __name__ == "__main__":
    main(*sys.argv[1:])
