"""Runs golden_test on files of goldens: with the reference evaluation, and on the backends cpu and onednn."""
import pathlib
import re
import subprocess


class Comparison:
    """golden_test of a build, and what it said of each case."""

    def __init__(self, build):
        self.program = pathlib.Path(build) / "tests/golden/golden_test"
        cpu, onednn = (str(pathlib.Path(build) / f"backends/{b}/tenon-{b}.so") for b in ("cpu", "onednn"))
        self.ways = {"reference": [], "cpu": ["-b", "cpu", cpu], "onednn": ["-b", "onednn", cpu, onednn]}
        self.ways = {way: options for way, options in self.ways.items() if all(pathlib.Path(o).exists() for o in options if "/" in o)}
        self.cases, self.failures = {way: 0 for way in self.ways}, {way: {} for way in self.ways}

    def run(self, files):
        """Compares the cases of files in every way, and prints the failures."""
        for way, options in self.ways.items():
            done = subprocess.run([self.program, *options, *map(str, files)], capture_output=True, text=True, errors="replace")
            counts = re.findall(r"^(\d+) cases, (\d+) failures$", done.stdout + done.stderr, re.M)
            if len(counts) != len(files):
                raise SystemExit(f"{self.program} {' '.join(options)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
            self.cases[way] += sum(int(n) for n, _ in counts)
            found = re.findall(r"^failed (.*?): (.*)$", done.stderr, re.M)
            if len(found) != sum(int(n) for _, n in counts):
                raise SystemExit(f"{self.program} {' '.join(options)}: {len(found)} lines of failures, {counts}\n{done.stderr}")
            self.failures[way].update(found)
            for case, reason in found:
                print(f"{way}: {case}: {reason}")

    def failed(self):
        """The names of cases that failed in some way."""
        return sorted(set().union(*self.failures.values()))

    def table(self):
        """Lines of a Markdown table."""
        return ["| evaluated by | cases | failures |", "|---|---|---|"] + [
            f"| {way} | {self.cases[way]} | {len(self.failures[way])} |" for way in self.ways]
