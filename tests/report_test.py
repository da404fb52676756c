"""The page of figures/report.py as a browser shows it. Usage: report_test.py [FOLDER]

Makes a small folder like that of `headflow reproduce`, writes its page and looks at it with chromium at the widths of
a phone, a tablet and a desk. FOLDER: a real one, which must have all twenty figures, is looked at as well.
"""

import html
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from html.parser import HTMLParser
from pathlib import Path

import netCDF4

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "figures"))

import style  # noqa: E402
from outcome import PAPER  # noqa: E402

REAL = Path(sys.argv.pop(1)) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None
SIZES = [(360, 800), (768, 1024), (1280, 900)]
MISSING = "fig07"

# Runs in the page once everything is loaded. An element that sticks out is fine inside a scroller of its own.
MEASURE = """<script>addEventListener("load", () => {
  const width = document.documentElement.clientWidth;
  const scrolls = e => e && (/auto|scroll/.test(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
  const out = [...document.body.querySelectorAll("*")].filter(e => {
    const box = e.getBoundingClientRect();
    return box.width > 0 && (box.right > width + 0.5 || box.left < -0.5) && !scrolls(e.parentElement);
  });
  parent.postMessage({
    name: window.name, innerWidth, clientWidth: width, scrollWidth: document.documentElement.scrollWidth,
    outside: out.map(e => e.tagName + "#" + e.id + "." + e.className + " " + e.textContent.slice(0, 40)),
    images: [...document.images].map(i => ({figure: i.closest("section") && i.closest("section").id,
      good: i.complete && i.naturalWidth > 0, shown: i.getBoundingClientRect().width, inside: i.src.startsWith("data:")})),
    text: document.body.innerText}, "*");
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
        figure, axes = style.plt.subplots(figsize=(inches, 3))
        axes.plot([0, 1], [0, 1])
        style.save(figure, folder / f"picture{inches}")
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
    times = {name: {"seconds": 41.2, "core_seconds": 80.1, "tasks": 120, "shared": 12} for name in PAPER if name != "fig09"}
    (folder / "times.json").write_text(json.dumps({**times, "verify": {"seconds": 170}}))
    rows = [row("III.1", "the loss is " + LONG.replace(" ", "") * 3), row("III.1", "the loss is " + LONG.replace(" ", "") * 3),
            row("III.4", LONG, verdict="holds as corrected", expected="holds as corrected", printed=0.25, printed_relation="<="),
            row("IV.2", "x", predicted=1.234567e-12, verdict="fails")]
    (folder / "verify.json").write_text(json.dumps({"rows": rows, "holds": 2, "holds_as_corrected": 1, "fails": 1, "not_as_expected": 1}))
    for path in folder.glob("picture*"):
        path.unlink()


def write_page(folder):
    return subprocess.run(["/usr/bin/python3", ROOT / "figures/report.py", folder], capture_output=True, text=True)


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
                    "hidden": small.replace("<body>", "<body style='overflow-x:hidden'><div style='width:1400px'>wide</div>"),
                    "broken": small.replace("data:image/png;base64,", "data:image/png;base64,AAAA", 1)}
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
        for done in self.done.values():
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("wrote ", done.stdout)
        for page in self.pages.values():
            self.assertLess(len(page), 8e6)

    def test_layout_has_the_width_that_was_asked_for(self):
        for name, width, page in self.each():
            with self.subTest(page=name, width=width):
                self.assertEqual((page["innerWidth"], page["clientWidth"]), (width, width))

    def test_every_picture_is_shown(self):
        for name, width, page in self.each():
            with self.subTest(page=name, width=width):
                expected = [f for f in PAPER if not (name == "small" and f == MISSING)]
                self.assertEqual([image["figure"] for image in page["images"] if image["figure"] in PAPER], expected)
                for image in page["images"]:
                    self.assertTrue(image["good"] and image["inside"], image["figure"])
                    self.assertGreater(image["shown"], 200, image["figure"])

    def test_nothing_is_wider_than_the_page(self):
        for name, width, page in self.each():
            with self.subTest(page=name, width=width):
                self.assertLessEqual(page["scrollWidth"], page["clientWidth"])
                self.assertEqual(page["outside"], [])

    def test_what_must_be_noticed_is_noticed(self):
        for _, _, page in self.each("wide"):
            self.assertGreater(page["scrollWidth"], page["clientWidth"])
            self.assertIn("DIV#wide. wide", page["outside"])
        for _, _, page in self.each("hidden"):  # cut off, not scrolled
            self.assertTrue(any("wide" in element for element in page["outside"]))
        for _, _, page in self.each("broken"):
            self.assertFalse(page["images"][0]["good"])

    def test_texts_are_shown(self):
        for _, width, page in self.each("small"):
            for text in ("Heads & <features> of setting 1", "What is seen. --flag and x < y.", "Finding", "The measured loss is lower.",
                         "The paper leaves the seed open", "120 tasks, 12 of them shared", "80 s of processor time", "headflow reproduce fig20",
                         "0.1.0, commit 0123456789ab", "19 of 20 figures", "printed: <= 0.25", "not as expected", "= 1.235e-12"):
                with self.subTest(width=width, text=text):
                    self.has(text, page["text"])

    def test_a_missing_figure_is_named(self):
        self.has("Figure <span id=fig07>7</span>: not computed: <code>headflow reproduce fig07</code>", self.pages["small"])
        if REAL:
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
                    else:
                        self.assertNotIn(":", link)
                        self.assertTrue((folder / link).is_file())
        for file in ("fig05.nc", "configs/fig05.toml", "figures/fig05.pdf", "figures/fig05.svg", "verify.json"):
            self.assertIn(file, Links(self.pages["small"]).references)


class Folders(unittest.TestCase):
    """Of what is missing or broken nothing is shown, or that it is missing."""

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name)

    def tearDown(self):
        self.temporary.cleanup()

    def test_an_empty_folder(self):
        done = write_page(self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("headflow reproduce all", done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_data_without_pictures_and_broken_files(self):
        for name in ("configs", "figures"):
            (self.folder / name).mkdir()
        (self.folder / "figures/fig03.png").write_bytes(b"\x89PNG\r\n\x1a\n and no more")
        (self.folder / "configs/fig03.toml").write_text("[figure\n")
        for name in ("fig03.nc", "fig04.nc", "times.json"):
            (self.folder / name).write_text("not what it should be")
        (self.folder / "verify.json").write_text('{"rows": [{}]}')
        done = write_page(self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        page = (self.folder / "index.html").read_text()
        self.assertIn("not drawn: <code>headflow reproduce fig03 fig04</code>", page)
        self.assertIn("not computed: <code>headflow reproduce fig01 fig02</code>", page)
        self.assertIn("verify.json cannot be read", page)


if __name__ == "__main__":
    unittest.main()
