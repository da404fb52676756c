"""What `make install` installs works far from its source. Usage: install_test.py PATH_TO_HEADFLOW (its folder is the build)."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest
from pathlib import Path

PROGRAM = Path(sys.argv.pop(1)).resolve()
ROOT = Path(__file__).resolve().parent.parent.parent

PLAIN = {key: value for key, value in os.environ.items() if key not in ("HEADFLOW_SHARE", "DESTDIR")}
PLAIN["PYTHONDONTWRITEBYTECODE"] = "1"  # what is installed is looked at after it was used


def run(*arguments, cwd, program=None, **environment):
    return subprocess.run([program or PROGRAM, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, env={**PLAIN, **environment})


def complete(script, *words):
    """What bash offers for the last word."""
    quoted = " ".join(f"'{word}'" for word in words)
    done = subprocess.run(["bash", "--norc", "-c", f'{script}\nCOMP_WORDS=({quoted}) COMP_CWORD={len(words) - 1}\n_headflow\n'
                                                   'printf "%s\\n" "${COMPREPLY[@]}"'], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout.split("\n")[:-1] if done.stdout.strip() else []


def commands():
    """Name and line of each command, from the overview."""
    text = run("--help", cwd="/").stdout.split("commands:\n")[1].split("\n\n")[0]
    return dict(re.match(r"  (\S+) +(.*)", line).groups() for line in text.splitlines())


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        work = Path(cls.temporary.name)
        cls.elsewhere = work / "elsewhere"
        cls.elsewhere.mkdir()
        # Staged as a package is, then moved: nothing of it may depend on where it was built or put.
        done = subprocess.run(["cmake", "--install", PROGRAM.parent, "--prefix", "/opt/headflow"], capture_output=True, text=True,
                              env={**PLAIN, "DESTDIR": str(work / "stage")})
        assert done.returncode == 0, done.stdout + done.stderr
        cls.prefix = work / "moved"
        shutil.move(work / "stage/opt/headflow", cls.prefix)
        cls.left = [path for path in (work / "stage").rglob("*") if path.is_file()]
        cls.program = cls.prefix / "bin/headflow"

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def call(self, *arguments, **environment):
        return run(*arguments, cwd=self.elsewhere, program=self.program, **environment)

    def test_what_is_installed(self):
        self.assertEqual(self.left, [], "files outside the prefix")
        for file in ("bin/headflow", "share/headflow/python/headflow/plot.py", "share/headflow/python/headflow/figures/report.css",
                     "share/headflow/python/headflow/figures/report.js",
                     "share/headflow/configs/paper/fig02.toml", "share/headflow/docs/theory.md", "share/man/man1/headflow.1",
                     "share/bash-completion/completions/headflow", "share/zsh/site-functions/_headflow",
                     "share/fish/vendor_completions.d/headflow.fish", "share/doc/headflow/LICENSE", "share/doc/headflow/CITATION.cff"):
            self.assertTrue((self.prefix / file).is_file(), file)
        self.assertFalse(list(self.prefix.rglob("__pycache__")))

    def test_figures_are_found_there(self):
        trace = self.call("reproduce", "--help")
        self.assertEqual((trace.returncode, trace.stderr), (0, ""))
        listed = self.call("reproduce", "list")
        there = {tomllib.loads(path.read_text()).get("figure", {}).get("part_of", path.stem)
                 for path in (self.prefix / "share/headflow/configs/paper").glob("*.toml")}
        self.assertIn("fig05", there)  # of three parts
        self.assertEqual((listed.returncode, listed.stderr), (0, ""))
        self.assertEqual(listed.stdout.split(), sorted(there))
        extra = self.prefix / "share/headflow/configs/paper/mine.toml"  # its own folder, not the source's
        shutil.copy(self.prefix / "share/headflow/configs/paper/fig02.toml", extra)
        try:
            self.assertIn("mine", self.call("reproduce", "list").stdout.split())
        finally:
            extra.unlink()

    def test_plot_draws_there(self):
        done = self.call("flow", "--tokens", 3, "--nu", "2,2", "--time", 1, "--outputs", 5, "--quiet", "--output", "run.nc")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.call("plot", "run.nc")
        self.assertEqual((done.returncode, done.stderr), (0, "drew run.png\n"))
        self.assertTrue((self.elsewhere / "run.png").read_bytes().startswith(b"\x89PNG"))

    def test_the_folder_of_the_day_is_not_trusted(self):
        """A package that lies about is not taken in place of ours."""
        (self.elsewhere / "headflow").mkdir(exist_ok=True)
        for name in ("headflow/__init__", "headflow/plot", "xarray", "argparse"):
            (self.elsewhere / f"{name}.py").write_text("print('not ours')\n")
        lone = self.elsewhere.parent / "lone/bin/headflow"
        lone.parent.mkdir(parents=True)
        shutil.copy(self.program, lone)
        for program in (self.program, lone):
            done = run("plot", "none.nc", cwd=self.elsewhere, program=program)
            self.assertEqual(done.returncode, 2)
            self.assertNotIn("not ours", done.stdout + done.stderr)
            self.assertIn("there is no such file", done.stderr)  # the installed package; for `lone`, that of the source

    def test_another_folder_can_be_named(self):
        done = self.call("reproduce", "list", HEADFLOW_SHARE=str(ROOT))
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.call("reproduce", "list", HEADFLOW_SHARE=str(self.elsewhere))
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("HEADFLOW_SHARE must name the folder that holds python/ and configs/", done.stderr)
        done = self.call("plot", "none.nc", HEADFLOW_SHARE=str(ROOT))
        self.assertIn("there is no such file", done.stderr)
        done = self.call("plot", "none.nc", HEADFLOW_SHARE=str(self.elsewhere.parent))
        self.assertIn("HEADFLOW_SHARE must name the folder", done.stderr)


class Completion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.script = run("completion", "bash", cwd="/").stdout
        cls.helps = {name: run(name, "--help", cwd="/").stdout for name in commands()}

    def flags(self, name):
        """{flag: its line} of the help."""
        text = re.sub(r"\n {20,}", " ", self.helps[name])
        return {m[1]: m[2] for m in re.finditer(r"^ +(?:-\w,)?(--[\w.-]+)(.*)$", text, re.MULTILINE)}

    def test_commands(self):
        self.assertEqual(complete(self.script, "headflow", ""), [*commands(), "--help", "--version"])
        self.assertEqual(complete(self.script, "headflow", "fi"), ["fixed-point"])
        self.assertEqual(complete(self.script, "headflow", "zz"), [])

    def test_flags_are_those_of_the_help(self):
        for name in ("flow", "bayes", "sgd", "verify", "plot"):  # one a bash
            with self.subTest(name):
                self.assertEqual(sorted(complete(self.script, "headflow", name, "--")), sorted(self.flags(name)))
        self.assertEqual(complete(self.script, "headflow", "flow", "point.toml", "--act"), ["--activation"])

    def test_every_text_has_values_and_they_are_those_of_the_help(self):
        cases = dict(re.findall(r"^    '([\w-]+ --[\w.-]+)'\) (.*) ;;$", self.script, re.MULTILINE))
        for name in commands():
            for flag, line in self.flags(name).items():
                if " TEXT" not in line or flag == "--only":
                    continue
                with self.subTest(command=name, flag=flag):
                    offered = cases[f"{name} {flag}"]
                    words = re.fullmatch(r"words='(.*)'", offered)
                    if words is None:
                        self.assertRegex(offered, r"files='\*")
                        continue
                    self.assertNotEqual(words[1], "")
                    for word in words[1].split():
                        self.assertRegex(line, rf"\b{word}\b")

    def test_values(self):
        all_words = complete(self.script, "headflow", "flow", "--activation", "=")
        self.assertLess({"softmax", "softmax-1", "b-softmax"}, set(all_words))
        for start in ("so", "b"):
            expected = [word for word in all_words if word.startswith(start)]
            self.assertIn({"so": "softmax-1", "b": "b-softmax"}[start], expected)
            self.assertLess(len(expected), len(all_words))
            self.assertEqual(complete(self.script, "headflow", "flow", "--activation", start), expected)
            self.assertEqual(complete(self.script, "headflow", "flow", "--activation", "=", start), expected)
        self.assertEqual(complete(self.script, "headflow", "flow", "--heads", ""), [])
        self.assertIn("fig07", complete(self.script, "headflow", "reproduce", "fig0"))
        self.assertEqual(complete(self.script, "headflow", "completion", "z"), ["zsh"])

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("a run.toml", "result.nc", "notes.txt"):
                (Path(folder) / name).touch()
            (Path(folder) / "more").mkdir()
            script = f"cd '{folder}'\n{self.script}"
            self.assertEqual(sorted(complete(script, "headflow", "flow", "")), ["a run.toml", "more"])
            self.assertEqual(sorted(complete(script, "headflow", "plot", "")), ["more", "result.nc"])
            self.assertIn("notes.txt", complete(script, "headflow", "flow", "--output", ""))

    def test_other_shells(self):
        for shell, lines in {"zsh": ["#compdef headflow", "--activation["], "fish": ["complete -c headflow -f", "-l activation -x -a 'softmax "]}.items():
            done = run("completion", shell, cwd="/")
            self.assertEqual(done.returncode, 0)
            for line in lines:
                self.assertIn(line, done.stdout)
            if shutil.which(shell):  # its own parser
                self.assertEqual(subprocess.run([shell, "-n"], input=done.stdout, capture_output=True, text=True).stderr, "")
        for wrong, message in ((["tcsh"], 'must be one of "bash", "fish", "zsh"'), ([], "headflow completion bash, fish or zsh"), (["bash", "zsh"], "the name of a shell")):
            done = run("completion", *wrong, cwd="/")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(message, done.stderr)


class Manual(unittest.TestCase):
    def test_has_every_command_and_key(self):
        page = run("man", cwd="/").stdout
        plain = re.sub(r"\\f.|\\&", "", page).replace("\\-", "-")
        for name, summary in commands().items():
            self.assertIn(f"\n.SS headflow {name} ", plain)
            for flag in re.findall(r"^ +(?:-\w,)?--([\w.-]+)", run(name, "--help", cwd="/").stdout, re.MULTILINE):
                short = flag.split(".")[-1]  # keys stand there by their short form, in their section
                self.assertRegex(plain, rf"\n--{short}[ \n]", f"{name} {flag}")
        self.assertIn("https://arxiv.org/abs/2603.03993v1", plain)
        for line in page.splitlines():  # a line that troff would take for a request is one
            if line.startswith((".", "'")):
                self.assertRegex(line, r"^\.(TH|SH|SS|TP|PP|B|br|nf|fi)( |$)")
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=page, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
