"""Reads the output of `go test -json`, for hil_test/all.

    results.py failures FILE     prints the failed tests and their output, without
                                 lines that the tests only log
    results.py count FILE...     prints the tests that were skipped everywhere, then
                                 four numbers: passed, passed also with the race
                                 detector, failed, skipped

A test is identified by package and name, since two packages may have tests of one
name. A test that ran several times, with the race detector or in a lab, counts once.
"""

import json
import os
import re
import sys

INNER = re.compile(r"^ +--- (PASS|SKIP): (\S+)")
LAB = re.compile(r"in the lab run the tests of (\S+)")  # labs/packages_test.go


def events(name):
    with open(name, encoding="utf-8", errors="replace") as f:
        for line in f:
            try:
                event = json.loads(line)
            except ValueError:
                event = {"Action": "output", "Output": line}
            if isinstance(event, dict):
                yield event


ENTRY = re.compile(r"^\s*(\w+\.go):(\d+): ")
SECTION = re.compile(r"^\s*=== (?:RUN|PAUSE|NAME|CONT)\s+(\S+)")
FAILED = re.compile(r"^\s*--- FAIL: (\S+)")
FIRST, LAST = 4, 6  # printed lines of an entry: what a command prints last says why it failed


def logged(folder, file, line):
    """Reports whether a line of a test file is a call of Log or Logf."""
    try:
        with open(os.path.join(folder, file), encoding="utf-8") as f:
            return re.search(r"\.Logf?\(", f.read().splitlines()[int(line) - 1])
    except (OSError, IndexError):
        return False


def print_failures(package, text):
    """Prints what the failed tests wrote, from the output of a top-level test and its subtests."""
    lines = "".join(text).splitlines()
    bad = {m[1] for line in lines if (m := FAILED.match(line))}
    folder = package.removeprefix("lockstep/")
    for name in sorted(bad):
        if not any(other.startswith(name + "/") for other in bad):
            print("FAIL:", name)
    show = True
    mine = not bad  # a process that died names no failed test
    entries = [[]]  # the lines to print, by entry
    for line in lines:
        if m := SECTION.match(line):
            mine, show = m[1] in bad or not bad, True
            entries.append([])
            continue
        if m := ENTRY.match(line):
            show = not logged(folder, m[1], m[2])
            entries.append([])
        elif line.lstrip().startswith("--- "):
            show = False
        if mine and show:
            entries[-1].append(line)
    for entry in entries:
        if len(entry) > FIRST + LAST:
            entry[FIRST:-LAST] = ["    ..."]
        for line in entry:
            print(line)


def failures(name):
    text = {}  # by package and test; test "" is the package itself
    for e in events(name):
        key = (e.get("Package"), e.get("Test", "").split("/")[0])
        if "Package" not in e:  # output of the compiler, or not JSON
            sys.stdout.write(e.get("Output", ""))
        elif e["Action"] == "output":
            text.setdefault(key, []).append(e["Output"])
        elif e["Action"] == "fail" and "/" not in e.get("Test", ""):
            print_failures(key[0], text.pop(key, []))
        elif e["Action"] in ("pass", "skip") and "/" not in e.get("Test", ""):
            text.pop(key, None)
    # The remaining tests have not ended: their process died.
    for (package, _), lines in text.items():
        print_failures(package, lines)


def count(names):
    passed, failed, skipped, raced = set(), set(), set(), set()
    for name in names:
        inside = {}  # package whose tests a lab test runs, by lab test
        for e in events(name):
            if "Package" not in e or "Test" not in e:
                continue
            key = (e["Package"], e["Test"])
            if e["Action"] == "output":
                if m := LAB.search(e["Output"]):
                    inside[key] = m[1]
                elif (m := INNER.match(e["Output"])) and key in inside:
                    # The lab test itself fails if a test in it is skipped.
                    if m[1] == "PASS":
                        passed.add((inside[key], m[2]))
            elif e["Action"] == "pass":
                passed.add(key)
                if "race" in os.path.basename(name):
                    raced.add(key)
            elif e["Action"] == "fail":
                failed.add(key)
            elif e["Action"] == "skip":
                skipped.add(key)
    top = lambda keys: sum("/" not in test for _, test in keys)
    for package, test in sorted(skipped - passed):
        print(f"     {package} {test}")
    print(top(passed - failed), top(raced - failed), top(failed), len(skipped - passed))


if sys.argv[1] == "failures":
    failures(sys.argv[2])
else:
    count(sys.argv[2:])
