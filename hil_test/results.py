"""Reads what `go test -json` wrote, for hil_test/all.

    results.py trouble FILE      what failed, and all it printed
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
LAB = re.compile(r"in the lab run the tests of (\S+)")  # packages_lab_test.go


def events(name):
    with open(name, encoding="utf-8", errors="replace") as f:
        for line in f:
            try:
                event = json.loads(line)
            except ValueError:
                event = {"Action": "output", "Output": line}
            if isinstance(event, dict):
                yield event


def trouble(name):
    text = {}  # by package and test, "" for a package
    for e in events(name):
        key = (e.get("Package"), e.get("Test", "").split("/")[0])
        if "Package" not in e:  # of the compiler, or no JSON
            sys.stdout.write(e.get("Output", ""))
        elif e["Action"] == "output":
            text.setdefault(key, []).append(e["Output"])
        elif e["Action"] == "fail" and "/" not in e.get("Test", ""):
            sys.stdout.write("".join(text.pop(key, [])))
        elif e["Action"] in ("pass", "skip") and "/" not in e.get("Test", ""):
            text.pop(key, None)
    # What is left has not ended: the process died.
    for lines in text.values():
        sys.stdout.write("".join(lines))


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
