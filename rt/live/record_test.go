package live

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/hil_test/lab"
)

// startView starts lockstep view and returns the address of its page.
func startView(t *testing.T, files ...string) (url string) {
	t.Helper()
	view := exec.Command(lab.Command(t), append([]string{"view"}, files...)...)
	out, err := view.StdoutPipe()
	if err == nil {
		err = view.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = view.Process.Signal(os.Interrupt); _ = view.Wait() })
	lines := bufio.NewScanner(out)
	lines.Scan()
	url, ok := strings.CutPrefix(lines.Text(), "record: ")
	if !ok {
		t.Fatal(lines.Text())
	}
	return url
}

// The page of a record says that it is one, and shows at each time the values that export writes.
func TestPageOfARecordShowsTheValuesOfTheExport(t *testing.T) {
	b := newBrowser(t)
	rec, table := filepath.Join(t.TempDir(), "run.rec"), filepath.Join(t.TempDir(), "run.csv")
	lab.MustRun(t, "sim", "powershift-bench", "-for", "6s", "-record", rec)
	lab.MustRun(t, "export", rec, "-o", table)
	f, err := os.Open(table)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}

	p := b.open(startView(t, rec, rec), 1600, 1000, false)
	p.await(`Boolean(window.lockstep && document.querySelector("#record input[type=range]") && lockstep.signals.time > 5.9)`)
	p.await(`document.getElementById("state").textContent === "record"`)
	p.await(`document.getElementById("alert").textContent.includes("This is a record")`)
	p.eval(`window.rejected = []; addEventListener("unhandledrejection", (e) => rejected.push(String(e.reason))); 0`)
	for key, panel := range []string{"plant", "scope", "inputs", "inputs"} { // a record has three panels; key 4 does nothing
		p.eval(fmt.Sprintf(`document.activeElement.blur(); document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "%d", bubbles: true })); 0`, key+1))
		if got := p.eval("document.body.dataset.panel"); got != panel {
			t.Errorf("key %d shows the panel %s, want %s", key+1, got, panel)
		}
	}
	for _, width := range []int{400, 1200, 1600} {
		p.size(width, 1000, false)
		for _, tab := range []string{"plant", "scope", "inputs"} {
			p.eval(fmt.Sprintf(`document.querySelector("#tabs button[data-panel=%s]").click(); 0`, tab))
			if p.eval(fmt.Sprintf(`String(document.getElementById(%q).offsetHeight > 100)`, tab)) != "true" {
				t.Errorf("the panel %s is not visible at %d px", tab, width)
			}
		}
		p.await("document.documentElement.scrollWidth <= innerWidth")
		p.shoot(fmt.Sprintf("record-%d", width))
	}
	if n := p.eval(`String([...document.querySelectorAll("main > section")].length) + document.querySelectorAll("#tabs button").length`); n != "63" {
		t.Errorf("%s panels and tabs, want 6 and 3", n)
	}
	failed := `JSON.stringify(performance.getEntriesByType("resource").filter((e) => e.responseStatus >= 400).map((e) => e.name))`
	shown := 0
	for _, at := range []string{"0.5", "2.005", "3.21", "5.995"} {
		p.eval(fmt.Sprintf(`(() => { const s = document.querySelector("#record input[type=number]"); s.value = %s; s.dispatchEvent(new Event("change")); })()`, at))
		p.await(fmt.Sprintf("Math.abs(lockstep.signals.time - %s) < 1e-6", at))
		for _, row := range rows[1:] {
			seconds, _ := strconv.ParseFloat(row[0], 64)
			want, _ := strconv.ParseFloat(at, 64)
			if !scalar.EqualWithinAbs(seconds, want, 1e-6) {
				continue
			}
			for i, head := range rows[0][1:] {
				name, _, _ := strings.Cut(head, "[")
				text := p.eval(fmt.Sprintf(`String(lockstep.signals.values.get(%q))`, name))
				got, err := strconv.ParseFloat(text, 64)
				value, bad := strconv.ParseFloat(row[1+i], 64)
				if err != nil || bad != nil {
					continue // not shown
				}
				if shown++; !scalar.EqualWithinAbsOrRel(got, value, 1e-9, 1e-9) {
					t.Errorf("%s at %s s is %s, want %s", name, at, text, row[1+i])
				}
			}
		}
		p.shoot("record-" + at)
	}
	if shown < 40 {
		t.Errorf("only %d values were compared", shown)
	}
	p.eval(`(() => { const s = document.querySelector("#record input[type=range]"); s.value = 1; s.dispatchEvent(new Event("input")); })()`)
	p.await("Math.abs(lockstep.signals.time - 1) < 1e-6")
	p.eval(`document.querySelector("#record button").click(); 0`)
	p.await("lockstep.signals.time > 1.2 && lockstep.signals.time < 5.9")
	if got := p.eval(failed); got != "[]" {
		t.Errorf("the door of a record refuses what its page asks: %s", got)
	}
	if got := p.eval("JSON.stringify(rejected)"); got != "[]" {
		t.Errorf("errors of the page: %s", got)
	}
}

// A CSV file has no plant. Its scope scrubs, beside a record, whose inputs the page shows.
func TestPageOfACSVFileAndARecord(t *testing.T) {
	b := newBrowser(t)
	dir := t.TempDir()
	rec, table := filepath.Join(dir, "run.rec"), filepath.Join(dir, "run.csv")
	lab.MustRun(t, "sim", "powershift-bench", "-for", "2s", "-record", rec)
	lab.MustRun(t, "export", rec, "-o", table)
	p := b.open(startView(t, table, rec), 1000, 800, false)
	p.await(`Boolean(window.lockstep && lockstep.signals.time > 1.9)`)
	if n := p.eval(`[...document.querySelectorAll("main > section")].map((s) => s.id).join()`); n != "scope,plant2,scope2,inputs2" {
		t.Errorf("panels %s, want the scope of the CSV file and all panels of the record", n)
	}
	p.eval(`(() => { const set = (e, v) => { e.value = v; e.dispatchEvent(new Event("change")); };
		set(document.querySelector("#scope input"), "w1"); set(document.querySelector("#scope input"), "2:w1"); set(document.querySelector("#record input[type=number]"), 1.005); })()`)
	p.await(`Math.abs(lockstep.signals.time - 1.005) < 1e-6 && lockstep.signals.rings.get("2:w1")?.n > 300`)
	p.await(`lockstep.signals.values.get("w1") > 100 && Math.abs(lockstep.signals.values.get("w1") - lockstep.signals.values.get("2:w1")) < 1e-6`)
	p.await("document.documentElement.scrollWidth <= innerWidth")
	p.shoot("csv")
}

// Two records are side by side: a picture, a scope and the inputs of each, at one time.
func TestTwoRecordsAreSideBySideAtOneTime(t *testing.T) {
	b := newBrowser(t)
	dir := t.TempDir()
	first, second := filepath.Join(dir, "old.rec"), filepath.Join(dir, "new.rec")
	lab.MustRun(t, "sim", "powershift-bench", "-for", "3s", "-record", first)
	lab.MustRun(t, "sim", "powershift-bench", "-for", "3s", "-set", "mu_oil=0.15", "-record", second)
	p := b.open(startView(t, first, second), 1600, 1000, false)
	p.await(`Boolean(window.lockstep && lockstep.signals.time > 2.9)`)
	for _, panel := range []string{"plant", "scope", "inputs"} {
		p.await(fmt.Sprintf(`(() => { const [a, b] = [%q, %q].map((id) => document.getElementById(id).getBoundingClientRect());
			return a.right <= b.left && Math.abs(a.top - b.top) < 2 && Math.abs(a.width - b.width) < 2; })()`, panel, panel+"2"))
	}
	p.await(`document.querySelector("#plant h2").textContent === "Drivetrain 1: old.rec" && document.querySelector("#plant2 h2").textContent === "Drivetrain 2: new.rec"`)
	p.await(`(() => { const span = (id) => document.querySelector(id + " [aria-label=window]"); span("#scope2").value = 2; span("#scope2").dispatchEvent(new Event("change"));
		return span("#scope").value === "2"; })()`)

	// a click in the second scope moves the time of both records
	var x, y float64
	_, _ = fmt.Sscan(p.eval(`(() => { const c = document.querySelector("#scope2 canvas").getBoundingClientRect(); return (c.left + c.width / 2) + " " + (c.top + c.height / 2); })()`), &x, &y)
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		p.must(p.session, "Input.dispatchMouseEvent", map[string]any{"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1})
	}
	p.await(`lockstep.signals.time > 0.5 && lockstep.signals.time < 2.5`)
	p.await(`["#scope", "#scope2"].every((id) => document.querySelector(id + " .readout").textContent.startsWith("A " + lockstep.signals.time.toFixed(3).slice(0, 4)))`)
	const torques = `(id) => [...document.querySelectorAll(id + " .symbol ~ text.value")].map((e) => e.textContent).filter(Boolean).join()`
	p.eval(`(() => { const s = document.querySelector("#record input[type=number]"); s.value = 0.55; s.dispatchEvent(new Event("change")); })()`) // clutches slip
	p.await("Math.abs(lockstep.signals.time - 0.55) < 1e-6")
	p.await(`((torques) => torques("#plant") && torques("#plant2") && torques("#plant") !== torques("#plant2"))(` + torques + `)`)
	p.await(`(() => { const axes = (id) => document.querySelector(id + " canvas"); return axes("#scope").height === axes("#scope2").height; })()`)
	p.shoot("side-by-side")
	p.size(400, 1000, true)
	p.await("document.documentElement.scrollWidth <= innerWidth")
	p.shoot("side-by-side-400")
}
