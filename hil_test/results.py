"""Reads what `go test -json` wrote, for hil_test/all.

    results.py trouble FILE      what failed, and what it printed, but for what
                                 the tests only log
    results.py count FILE...     what was skipped and ran nowhere else, then
                                 four numbers: passed, of these with the race
                                 detector too, failed, skipped

A test is a package and a name: two packages may have tests of one name. A test
that ran several times, with the race detector or in the lab, counts once.
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
LONG = 5  # lines of an entry


def logged(folder, file, line):
    """Whether a line of a test only logs."""
    try:
        with open(os.path.join(folder, file), encoding="utf-8") as f:
            return re.search(r"\.Logf?\(", f.read().splitlines()[int(line) - 1])
    except (OSError, IndexError):
        return False


def essence(package, text):
    """What failed tests say, of the output of a test at the top and all below."""
    lines = "".join(text).splitlines()
    bad = {m[1] for line in lines if (m := FAILED.match(line))}
    folder = package.removeprefix("lockstep/")
    for name in sorted(bad):
        if not any(other.startswith(name + "/") for other in bad):
            print("FAIL:", name)
    show, length = True, 0
    mine = not bad  # a process that died has none
    for line in lines:
        if m := SECTION.match(line):
            mine, show, length = m[1] in bad or not bad, True, 0
            continue
        if m := ENTRY.match(line):
            show, length = not logged(folder, m[1], m[2]), 0
        elif line.lstrip().startswith("--- "):
            show = False
        length += 1
        if mine and show and length <= LONG:
            print(line)
        elif mine and show and length == LONG + 1:
            print("    ...")


def trouble(name):
    text = {}  # by package and test, "" for a package
    for e in events(name):
        key = (e.get("Package"), e.get("Test", "").split("/")[0])
        if "Package" not in e:  # of the compiler, or no JSON
            sys.stdout.write(e.get("Output", ""))
        elif e["Action"] == "output":
            text.setdefault(key, []).append(e["Output"])
        elif e["Action"] == "fail" and "/" not in e.get("Test", ""):
            essence(key[0], text.pop(key, []))
        elif e["Action"] in ("pass", "skip") and "/" not in e.get("Test", ""):
            text.pop(key, None)
    # What is left has not ended: the process died.
    for (package, _), lines in text.items():
        essence(package, lines)


def count(names):
    passed, failed, skipped, raced = set(), set(), set(), set()
    for name in names:
        inside = {}  # package whose tests a lab test runs
        for e in events(name):
            if "Package" not in e or "Test" not in e:
                continue
            key = (e["Package"], e["Test"])
            if e["Action"] == "output":
                if m := LAB.search(e["Output"]):
                    inside[key] = m[1]
                elif (m := INNER.match(e["Output"])) and key in inside:
                    # What is skipped there is the lab test's own business.
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


if sys.argv[1] == "trouble":
    trouble(sys.argv[2])
else:
    count(sys.argv[2:])
