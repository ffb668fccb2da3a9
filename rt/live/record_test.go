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
	if n := p.eval(`String([...document.querySelectorAll("main > section")].length) + document.querySelectorAll("#tabs button").length`); n != "33" {
		t.Errorf("%s panels and tabs, want 3 and 3", n)
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
	if n := p.eval(`[...document.querySelectorAll("main > section")].map((s) => s.id).join()`); n != "scope,inputs" {
		t.Errorf("panels %s, want the scope and the inputs", n)
	}
	p.eval(`(() => { const set = (e, v) => { e.value = v; e.dispatchEvent(new Event("change")); };
		set(document.querySelector("#scope input"), "w1"); set(document.querySelector("#scope input"), "2:w1"); set(document.querySelector("#record input[type=number]"), 1.005); })()`)
	p.await(`Math.abs(lockstep.signals.time - 1.005) < 1e-6 && lockstep.signals.rings.get("2:w1")?.n > 300`)
	p.await(`lockstep.signals.values.get("w1") > 100 && Math.abs(lockstep.signals.values.get("w1") - lockstep.signals.values.get("2:w1")) < 1e-6`)
	p.await("document.documentElement.scrollWidth <= innerWidth")
	p.shoot("csv")
}
