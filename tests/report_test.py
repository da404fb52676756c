"""The page of headflow.figures.report as a browser shows it. Usage: report_test.py [FOLDER]

Makes a small folder like that of `headflow reproduce`, writes its page and looks at it with chromium at the widths of
a phone, a tablet and a desk. FOLDER: a real one is looked at as well; with HEADFLOW_TEST_EFFORT=full it must have all twenty figures.
"""

import contextlib
import html
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import netCDF4
from PIL import Image, ImageDraw

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from headflow.figures import report, statements  # noqa: E402
from headflow.figures.formulas import typeset  # noqa: E402
from headflow.figures.outcome import PAPER, Outcome  # noqa: E402

REAL = Path(sys.argv.pop(1)) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None
SIZES = [(360, 800), (768, 1024), (1280, 900)]
MISSING = "fig07"
FULL = os.environ.get("HEADFLOW_TEST_EFFORT") == "full"

ARXIV = "https://arxiv.org/abs/2603.03993v1"
# A name that is none of ours, and tries to be a part of the page.
ODD = "a&b \"c\" <img src=x onerror=alert(1)> #1 50%.d"

# Runs in the page once everything is loaded.
MEASURE = """<script>addEventListener("load", () => {
  const width = document.documentElement.clientWidth;
  const all = [...document.body.querySelectorAll("*")];
  const name = e => e.tagName + "#" + e.id + "." + e.className + " " + e.textContent.slice(0, 40);
  const out = all.filter(e => {
    const box = e.getBoundingClientRect();
    return box.width > 0 && (box.right > width + 0.5 || box.left < -0.5);
  });
  const scrolled = all.filter(e => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX != "visible");
  const measured = {
    name: window.name, innerWidth, clientWidth: width, scrollWidth: document.documentElement.scrollWidth,
    outside: out.map(name), scrolled: scrolled.map(name),
    images: [...document.images].map(i => ({figure: i.closest("section") && i.closest("section").id,
      good: i.complete && i.naturalWidth > 0, shown: i.getBoundingClientRect().width, inside: i.src.startsWith("data:")})),
    text: document.body.innerText};
  const filter = document.getElementById("filter");
  const show = (words, verdict) => {
    filter.elements.words.value = words;
    filter.elements.verdict.value = verdict;
    filter.dispatchEvent(new Event("input", {bubbles: true}));
    return [[...document.querySelectorAll("#verify tbody tr")].filter(r => r.getBoundingClientRect().height > 0)
      .map(r => r.querySelector("b").textContent), filter.querySelector("output").textContent];
  };
  if (filter) measured.filter = {visible: filter.getBoundingClientRect().height > 0, all: show("", ""), one: show("iii.4 LOSS", ""),
    corrected: show("", "holds as corrected"), unexpected: show("", "not as expected"), none: show("nowhere", "")};
  if (filter) show("", "");
  scrollTo({top: document.body.scrollHeight, behavior: "instant"});
  const nav = document.querySelector("nav").getBoundingClientRect();
  measured.contents = {right: nav.right, page: document.querySelector("main").getBoundingClientRect().left, top: nav.top, bottom: nav.bottom, height: innerHeight, scrolled: scrollY,
    links: [...document.querySelectorAll("nav a")].filter(a => a.checkVisibility()).length};
  parent.postMessage(measured, "*");
});</script>"""

COLLECT = """<!doctype html><meta charset=utf-8><pre id=measured></pre><script>
const measured = [];
addEventListener("message", e => { measured.push(e.data);
  document.getElementById("measured").textContent = JSON.stringify(measured); });
</script>"""

LONG = "E(m, R, b, v) = E_0 - g_1*sum_h(m_h.E[theta]) + c_1*sum_hh'(RR^T)_hh' + (c_2+c_4)*sum_hh'(m_h^T*C*m_h') - (c_3+c_4)*sum_h(m_h^T*C*m_h)"


def row(number, statement, **more):
    return {"id": f"Prop. {number}", "statement": statement, "setting": "softmax, flipping, L = 5, H = 4, F = 2, nu = 2, 2",
            "relation": "=", "predicted": 0.125, "measured": 0.12500001, "error": 1e-8, "error_kind": "refinement difference",
            "slack": 0.0, "verdict": "holds", "expected": "holds", **more}


def make_folder(folder):
    """All that `headflow reproduce all` leaves, small; one figure was not computed."""
    for name in ("configs", "figures"):
        (folder / name).mkdir()
    for inches in (4, 13):
        image = Image.new("RGB", (20 * inches, 60), "white")
        ImageDraw.Draw(image).line((0, 0, 20 * inches, 60), fill="black")
        image.save(folder / f"picture{inches}.png", dpi=(20, 20))
        for suffix in ("svg", "pdf"):
            (folder / f"picture{inches}.{suffix}").write_text("a drawing")
    for number, name in enumerate(PAPER, 1):
        if name == MISSING:
            continue
        for suffix in ("png", "svg", "pdf"):
            shutil.copy(folder / f"picture{4 if number % 2 else 13}.{suffix}", folder / "figures" / f"{name}.{suffix}")
        with netCDF4.Dataset(folder / f"{name}.nc", "w") as data:
            data.setncatts({"program_version": "0.1.0", "program_commit": "0123456789ab", "format_version": 1})
        texts = [f'title = "Heads & <features> of setting {number}"', f'paper = """\nThe paper shows {LONG * (number % 3 == 0)}.\n"""',
                 'caption = "What is seen. `--flag` and x < y."']
        if number == 5:
            texts += ['chosen = "The paper leaves the seed open: 1 to 5."', 'finding = "The measured loss is lower."']
        (folder / "configs" / f"{name}.toml").write_text("[figure]\n" + "\n".join(texts) + "\n\n[problem]\nheads = 2\n")
    shutil.copy(folder / "picture4.png", folder / "figures" / f"{ODD}.png")
    (folder / "configs" / f"{ODD}.toml").write_text("[problem]\n")
    times = {name: {"seconds": 41.2, "core_seconds": 80.1, "tasks": 120, "shared": 12} for name in PAPER if name != "fig09"}
    (folder / "times.json").write_text(json.dumps({**times, "verify": {"seconds": 170}}))
    rows = [row("III.1", "the loss is " + LONG.replace(" ", "") * 3), row("III.1", "the loss is " + LONG.replace(" ", "") * 3),
            row("III.4", "loss " + LONG, verdict="holds as corrected", expected="holds as corrected", printed=0.25, printed_relation="<="),
            row("IV.2", "x", predicted=1.234567e-12, verdict="fails")]
    (folder / "verify.json").write_text(json.dumps({"rows": rows, "holds": 2, "holds_as_corrected": 1, "fails": 1, "not_as_expected": 1}))
    for path in folder.glob("picture*"):
        path.unlink()


def write_page(folder):
    """As `report.py FOLDER`: (exit code, standard output, standard error)."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors), unittest.mock.patch.object(sys, "argv", ["report.py", str(folder)]):
        try:
            code = report.main() or 0
        except SystemExit as stop:  # with a message: exit code 1
            code = stop.code if isinstance(stop.code, int) else print(stop.code, file=sys.stderr) or 1
    return code, out.getvalue(), errors.getvalue()


def browse(pages, work):
    """Measurements of {name: HTML} at all sizes, as {(name, width): ...}, from one start of the browser. A frame is what gives
    a page a width of 360 px: a window of the browser itself is never narrower than about 500 px."""
    frames = []
    for name, text in pages.items():
        (work / f"{name}.html").write_text(text.replace("</body>", MEASURE + "</body>"))
        frames += [f'<iframe name="{name}@{w}" src="{name}.html" style="width:{w}px;height:{h}px;border:0;display:block"></iframe>'
                   for w, h in SIZES]
    (work / "frames.html").write_text(COLLECT + "\n".join(frames))
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
               f"--user-data-dir={work / 'profile'}", "--virtual-time-budget=20000", "--dump-dom", (work / "frames.html").as_uri()]
    for _ in range(2):  # a browser may stumble on a busy machine
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, "HOME": str(work)})
        found = done.stdout.split("<pre id=\"measured\">")[-1].split("</pre>")[0] if "<pre id=" in done.stdout else ""
        measured = {}
        for one in json.loads(html.unescape(found) or "[]"):
            name, width = one["name"].split("@")
            measured[name, int(width)] = one
        if len(measured) == len(frames):
            break
    else:
        raise AssertionError(f"chromium measured {sorted(measured)} only: {done.stderr[-500:]}")
    return measured


class Links(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.sources, self.references, self.ids = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            kind = {"href": self.references, "src": self.sources, "id": self.ids}.get(name)
            if kind is not None:
                kind.append(value)


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        work = Path(cls.temporary.name)
        cls.folder = work / "paper"
        cls.folder.mkdir()
        make_folder(cls.folder)
        cls.folders = {"small": cls.folder, **({"real": REAL} if REAL else {})}
        cls.done = {name: write_page(folder) for name, folder in cls.folders.items() if not (folder / "index.html").exists()}
        cls.pages = {name: (folder / "index.html").read_text() for name, folder in cls.folders.items()}
        if not shutil.which("chromium"):
            print("chromium is not installed: only what needs no browser is tested (scripts/install-packages test)", file=sys.stderr)
            cls.measured = None
            return
        small = cls.pages["small"]
        controls = {"wide": small.replace("</footer>", "<div id=wide style='width:1400px'>wide</div></footer>"),
                    "hidden": small.replace("<main>", "<main style='overflow-x:hidden'><div style='width:1400px'>wide</div>"),
                    "scroller": small.replace("</footer>", "<div id=wide style='overflow-x:auto'><p style='width:1400px'>wide</p></div></footer>"),
                    "broken": small.replace("data:image/png;base64,", "data:image/png;base64,AAAA", 1),
                    "loose": small.replace("position: sticky", "position: static"),
                    "silent": small[:small.index("<script>")] + "</body></html>"}
        cls.measured = browse({**cls.pages, **controls}, work)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def each(self, *names):
        if self.measured is None:
            self.skipTest("chromium is not installed")
        return [(name, width, self.measured[name, width]) for name in names or self.pages for width, _ in SIZES]

    def has(self, text, page):
        """As assertIn, without the page in the message."""
        self.assertTrue(text in page, f"not there: {text}")

    def test_is_written(self):
        for code, out, errors in self.done.values():
            self.assertEqual((code, errors), (0, ""))
            self.assertIn("wrote ", out)
        for page in self.pages.values():
            self.assertLess(len(page), 8e6)

    def test_layout_has_the_width_that_was_asked_for(self):
        for name, width, page in self.each():
            with self.subTest(page=name, width=width):
                self.assertEqual((page["innerWidth"], page["clientWidth"]), (width, width))

    def test_every_picture_is_shown(self):
        for name, width, page in self.each():
            with self.subTest(page=name, width=width):
                there = {path.stem for path in (self.folders[name] / "figures").glob("*.png")}
                expected = PAPER if name == "real" and FULL else [figure for figure in PAPER if figure in there]
                self.assertNotEqual(expected, [])
                self.assertEqual([image["figure"] for image in page["images"] if image["figure"] in PAPER], expected)
                for image in page["images"]:
                    self.assertTrue(image["good"] and image["inside"], image["figure"])
                    self.assertGreater(image["shown"], 200, image["figure"])

    def test_nothing_is_wider_than_the_page(self):
        for name, width, page in self.each():
            with self.subTest(page=name, width=width):
                self.assertLessEqual(page["scrollWidth"], page["clientWidth"])
                self.assertEqual(page["outside"], [])
                self.assertEqual(page["scrolled"], [])  # nor has it parts that scroll sideways

    def test_what_must_be_noticed_is_noticed(self):
        for _, _, page in self.each("wide"):
            self.assertGreater(page["scrollWidth"], page["clientWidth"])
            self.assertIn("DIV#wide. wide", page["outside"])
        for _, _, page in self.each("hidden"):  # cut off, not scrolled
            self.assertTrue(any("wide" in element for element in page["outside"]))
        for _, _, page in self.each("scroller"):
            self.assertIn("DIV#wide. wide", page["scrolled"])
        for _, _, page in self.each("broken"):
            self.assertFalse(page["images"][0]["good"])
        for _, _, page in self.each("loose"):
            self.assertLess(page["contents"]["bottom"], 0)
        for _, _, page in self.each("silent"):
            self.assertFalse(page["filter"]["visible"])  # what would not work is not there
            self.assertEqual(page["filter"]["none"][0], page["filter"]["all"][0])

    def test_contents_stay_in_view(self):
        for name, width, page in self.each():
            with self.subTest(page=name, width=width):
                contents = page["contents"]
                self.assertGreater(contents["scrolled"], 1000)
                self.assertGreaterEqual(contents["top"], 0)
                self.assertLessEqual(contents["bottom"], contents["height"])
                # Beside the page they are open; above it, a bar of one line.
                self.assertEqual(contents["links"] > 0, width >= 1200)
                if width < 1200:
                    self.assertLess(contents["bottom"], 60)
                else:
                    self.assertLess(contents["right"], contents["page"])

    def test_statements_are_filtered(self):
        for _, width, page in self.each("small"):
            with self.subTest(width=width):
                found = page["filter"]
                self.assertTrue(found["visible"])
                self.assertEqual(found["all"], [["Prop. III.1", "Prop. III.4", "Prop. IV.2"], "3 of 3 statements"])
                self.assertEqual(found["one"], [["Prop. III.4"], "1 of 3 statements"])
                self.assertEqual(found["corrected"], [["Prop. III.4"], "1 of 3 statements"])
                self.assertEqual(found["unexpected"], [["Prop. IV.2"], "1 of 3 statements"])
                self.assertEqual(found["none"], [[], "0 of 3 statements"])

    def test_texts_are_shown(self):
        for _, width, page in self.each("small"):
            for text in ("Heads & <features> of setting 1", "What is seen. --flag and x < y.", "Finding", "The measured loss is lower.",
                         "The paper leaves the seed open", "120 tasks, 12 of them shared", "80 s of processor time", "headflow reproduce fig20",
                         "0.1.0, commit 0123456789ab", "19 of 20 figures", "printed: ≤ 0.25", "not as expected", "= 1.235·10−12", ODD):
                with self.subTest(width=width, text=text):
                    self.has(text, page["text"])

    def test_a_missing_figure_is_named(self):
        self.has('Figure <span id="fig07">7</span>: not computed: <code>headflow reproduce fig07</code>', self.pages["small"])
        if REAL and FULL:
            self.assertFalse("not computed" in self.pages["real"] or "not drawn" in self.pages["real"], "figures are missing")

    def test_links(self):
        for name, folder in self.folders.items():
            links = Links(self.pages[name])
            self.assertEqual([source for source in links.sources if not source.startswith("data:image/png;base64,")], [])
            self.assertFalse("@import" in self.pages[name] or "url(" in self.pages[name], "a style sheet that loads something")
            self.assertEqual(len(set(links.ids)), len(links.ids))
            for link in links.references:
                with self.subTest(page=name, link=link):
                    if link.startswith("#"):
                        self.assertIn(link[1:], links.ids)
                    elif link != ARXIV:
                        self.assertNotIn(":", link)
                        self.assertTrue((folder / unquote(link)).is_file())
            self.assertIn(ARXIV, links.references)
            self.assertIn("docs/theory.md", links.references)
        for file in ("fig05.nc", "configs/fig05.toml", "figures/fig05.pdf", "figures/fig05.svg", "verify.json"):
            self.assertIn(file, Links(self.pages["small"]).references)


    def test_names_of_files_are_text(self):
        page = self.pages["small"]
        self.assertFalse("<img src=x" in page, "a name of a file became a part of the page")
        links = Links(page)
        self.assertIn(f"configs/{ODD}.toml", [unquote(link) for link in links.references])
        self.assertIn(ODD, [unquote(name) for name in links.ids])
        # A page without the escapes is noticed.
        self.assertTrue(Links(page.replace("&lt;img", "<img")).sources != links.sources)


class Formulas(unittest.TestCase):
    def test_as_written_by_hand(self):
        for text, expected in {
                "tau_s >= 6e4": "<i>τ</i><sub><i>s</i></sub> ≥ 6·10<sup>4</sup>",
                "noise of 1e-7": "noise of 10<sup>−7</sup>",
                "D^(-1/2)": "<i>D</i><sup>−1/2</sup>",
                "sum_hh' m_h^T C m_h'": "Σ<sub><i>h</i><i>h</i>′</sub> <i>m</i><sub><i>h</i></sub><sup>T</sup> <i>C</i> <i>m</i><sub><i>h</i>′</sub>",
                "grad_{m_h} E = -c1 E theta": "∇<sub><i>m</i><sub><i>h</i></sub></sub> <i>E</i> = −<i>c</i><sub>1</sub> E <i>θ</i>",
                "(L-1)(L-2)^2": "(<i>L</i>−1)(<i>L</i>−2)<sup>2</sup>",
                "|m_11 - m_21|": "|<i>m</i><sub>11</sub> − <i>m</i><sub>21</sub>|",
                "d^2E / dm_11^2": "<i>d</i><sup>2</sup><i>E</i> / <i>d</i><i>m</i><sub>11</sub><sup>2</sup>",
                "P(m.theta <= 0)": "<i>P</i>(<i>m</i>·<i>θ</i> ≤ 0)",
                "k*_1 x <y>": "<i>k</i><sup>*</sup><sub>1</sub> <i>x</i> &lt;<i>y</i>&gt;"}.items():
            with self.subTest(text):
                self.assertEqual(typeset(text), expected)

    def test_words_stay_words(self):
        for text in ("softmax-1 and B-softmax: a sum of what each one does", "Lemma A.5, Prop. III.4: init_noise, i.e. half-space", "at 0.02, 1,000 starts"):
            self.assertEqual(typeset(text), text)

    def test_what_is_not_known_is_not_zero(self):
        one = row("III.1", "x", measured=None, error=None)
        self.assertIn("not known ± not known", statements.line([one]))
        self.assertIn("not known", statements.line([row("III.1", "x"), one]), "it stands for its statement")


class Folders(unittest.TestCase):
    """Of what is missing or broken nothing is shown, or that it is missing."""

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name)

    def tearDown(self):
        self.temporary.cleanup()

    def test_an_empty_folder(self):
        code, _, errors = write_page(self.folder)
        self.assertEqual(code, 1)
        self.assertIn("headflow reproduce all", errors)

    def test_data_without_pictures_and_broken_files(self):
        for name in ("configs", "figures"):
            (self.folder / name).mkdir()
        (self.folder / "figures/fig03.png").write_bytes(b"\x89PNG\r\n\x1a\n and no more")
        (self.folder / "configs/fig03.toml").write_text("[figure\n")
        for name in ("fig03.nc", "fig04.nc", "times.json"):
            (self.folder / name).write_text("not what it should be")
        (self.folder / "verify.json").write_text('{"rows": [{}]}')
        self.assertEqual(write_page(self.folder)[::2], (0, ""))
        page = (self.folder / "index.html").read_text()
        self.assertIn("not drawn: <code>headflow reproduce fig03 fig04</code>", page)
        self.assertIn("not computed: <code>headflow reproduce fig01 fig02</code>", page)
        self.assertIn("verify.json cannot be read", page)


if __name__ == "__main__":
    unittest.main()
