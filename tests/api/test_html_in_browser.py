"""What notebooks are shown, in a real Chromium: narrow and wide, light and dark."""

import pytest

from dse import Metric, Space, Study, evaluator

pytestmark = [pytest.mark.slow, pytest.mark.browser]

PAGE = "<!doctype html><meta charset=utf-8><body>{}</body>"
LIGHT, DARK = ("#ffffff", "#1a1a1a"), ("#111111", "#e6e6e6")
LONG = "x" * 10_000

JUPYTERLAB = """
.jp-OutputArea-output dl, .jp-OutputArea-output dt, .jp-OutputArea-output dd { display: block; }
.jp-OutputArea-output dl { width: 100%; overflow: hidden; padding: 0; margin: 0; }
.jp-OutputArea-output dt { font-weight: bold; float: left; width: 20%; padding: 0; margin: 0; }
.jp-OutputArea-output dd { float: left; width: 80%; padding: 0; margin: 0; }
.jp-RenderedHTMLCommon td, .jp-RenderedHTMLCommon th, .jp-RenderedHTMLCommon tr {
  vertical-align: middle; padding: .5em; line-height: normal; white-space: normal; border: none; }
:not(.jp-RenderedMarkdown).jp-RenderedHTMLCommon td,
:not(.jp-RenderedMarkdown).jp-RenderedHTMLCommon th,
:not(.jp-RenderedMarkdown).jp-RenderedHTMLCommon tr { text-align: right; }
.jp-ThemedContainer .jp-RenderedHTMLCommon :not(pre) > code {
  background-color: rgb(1, 2, 3); padding: 1px 5px; }
.jp-RenderedHTMLCommon ul:not(.list-inline) { padding-left: 2em; }
.jp-RenderedHTMLCommon p { text-align: left; margin: 0; margin-bottom: 1em; }
"""
"""What JupyterLab 4.6 says of what stands in outputs."""

IN_JUPYTERLAB = """
const sheet = document.createElement('style');
sheet.textContent = arguments[0];
document.head.append(sheet);
document.body.className = 'jp-ThemedContainer';
const output = document.createElement('div');
output.className = 'jp-OutputArea-output jp-RenderedHTMLCommon';
output.append(...document.body.children);
document.body.append(output);
"""

LOOKS = """
return [...document.querySelectorAll('.dse-shown ' + arguments[0])].map(
  e => getComputedStyle(e)[arguments[1]]);
"""

HEIGHTS = """
return [...document.querySelectorAll('.dse-shown dt')].map(e => e.getBoundingClientRect().height);
"""

DARKER = """
const [paper, ink] = arguments;
document.body.style.background = paper; document.body.style.color = ink;
"""

CONTRASTS = """
const light = c => { const [r, g, b] = c.match(/[\\d.]+/g).slice(0, 3).map(v => {
    v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const paper = light(getComputedStyle(document.body).backgroundColor);
const ratio = c => (Math.max(light(c), paper) + .05) / (Math.min(light(c), paper) + .05);
const style = (what, key) => [...document.querySelectorAll(what)].map(e => getComputedStyle(e)[key]);
return {
  text: Math.min(...style('.dse-shown td, .dse-shown th, .dse-shown dd', 'color').map(ratio)),
  drawn: Math.min(...style('circle[r="4"]', 'fill').concat(style('circle[r="7.5"]', 'stroke')).map(ratio)),
};
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A study with a name of 10 kB among its values, its front, its space and its evaluator."""
    values = {"tile": [16, 32, 64, 128], "stages": (1, 6), "format": ["int8", LONG]}
    space = Space(values, "tile * stages <= 512")
    metrics = [Metric(name, "us", goal="minimize") for name in ("time", "memory", "loss")]

    @evaluator(*metrics)
    def kernel(tile, stages, format):  # noqa: A002 - a parameter's name
        return {"time": 1 / tile, "memory": tile * stages, "loss": len(format)}

    study = Study("wide", space, [kernel], storage="memory://", optimizer="random")
    study.run(measurements=40)
    shown = (study, study.front, space, kernel)
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(PAGE.format("".join(one._repr_html_() for one in shown)), encoding="utf-8")
    return path.as_uri()


@pytest.mark.parametrize("width", [400, 1000])
def test_nothing_is_wider_than_its_place(chromium, page, width):
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    chromium.get(page)
    assert chromium.execute_script("return document.documentElement.scrollWidth") <= width
    widths = (
        "return [...document.querySelectorAll('svg')].map(e => e.getBoundingClientRect().width)"
    )
    assert 300 < min(chromium.execute_script(widths)) <= 400
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_jupyterlab_leaves_it_as_it_is(chromium, page):
    chromium.get(page)

    def looks(what, key):
        return set(chromium.execute_script(LOOKS, what, key))

    asked = [
        ("dt", "float"),
        ("dd", "float"),
        ("dl", "display"),
        ("td:not(.dse-number)", "textAlign"),
        ("td.dse-number", "textAlign"),
        ("td", "verticalAlign"),
        ("td", "borderBottomStyle"),
        ("code", "backgroundColor"),
        ("figure", "display"),
        ("p.dse-plain", "display"),
    ]
    before = [looks(*one) for one in asked]
    heights = chromium.execute_script(HEIGHTS)
    chromium.execute_script(IN_JUPYTERLAB, JUPYTERLAB)
    assert [looks(*one) for one in asked] == before
    assert chromium.execute_script(HEIGHTS) == heights  # no word is broken into its letters
    assert before[0] == {"none"}
    assert (before[3], before[-2], before[-1]) == ({"left"}, {"block"}, {"none"})


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_it_can_be_read_on_the_notebooks_own_background(chromium, page, colours):
    chromium.get(page)
    chromium.execute_script(DARKER, *colours)
    found = chromium.execute_script(CONTRASTS)
    assert found["text"] > 7
    assert found["drawn"] > 3


def test_it_asks_nobody_for_anything_and_no_message_is_written(chromium, page):
    chromium.get_log("browser")
    chromium.get_log("performance")
    chromium.get(page)
    told = [entry["message"] for entry in chromium.get_log("performance")]
    asked = [one for one in told if '"Network.requestWillBeSent"' in one]
    assert len(asked) == 1  # the page itself
    assert chromium.get_log("browser") == []
