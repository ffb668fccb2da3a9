package live

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/hil_test/lab"
)

// statedTick waits for the message that begins with what, and returns the tick that it states.
func (p *tab) statedTick(what string) (tick int64) {
	p.t.Helper()
	p.await(fmt.Sprintf("document.getElementById('message').textContent.startsWith(%q)", what))
	text := p.eval("document.getElementById('message').textContent")
	if _, err := fmt.Sscanf(text[strings.Index(text, "from tick"):], "from tick %d", &tick); err != nil {
		p.t.Fatalf("%s: %v", text, err)
	}
	return tick
}

// around returns the values of a signal before a tick of 10 ms and from it on as the page has them. The stream of a
// slow page may lack a tick.
func (p *tab) around(name string, tick int64) (before, from string) {
	p.t.Helper()
	p.await(fmt.Sprintf("lockstep.signals.tick > %d", tick))
	value := func(further int) string {
		return p.eval(fmt.Sprintf("(() => { const r = lockstep.signals.rings.get(%q); return r.last(r.after(%g) + %d).toFixed(4); })()",
			name, float64(tick)/100-0.005, further))
	}
	return value(-1), value(0)
}

// A slider and a fault act at the tick that the page states: the samples of two pages and the record agree.
func TestPageChangesTheRunAtTheTickThatItStates(t *testing.T) {
	b := newBrowser(t)
	url, record, stop := run(t, "truck-bench")
	p, q := b.openPage(url, 1600, 1000, false), b.openPage(url, 1000, 800, true)
	before := p.eval("lockstep.signals.tick")
	p.await("lockstep.signals.tick > " + before + " + 50")
	for _, page := range []*tab{p, q} {
		page.eval("lockstep.signals.setEvery('tick'); 0")
		now := page.eval("lockstep.signals.tick")
		page.await("lockstep.signals.tick > " + now + " + 20")
	}

	p.eval(`(() => { const s = document.querySelector("#inputs input[type=range][aria-label=mu_left]"); s.value = 0.3; s.dispatchEvent(new Event("change")); })()`)
	slid := p.statedTick("mu_left 0.3")
	p.eval(`(() => { const f = document.querySelector("#faults form").elements; f.name.value = "ice"; f.where.value = "input=mu_right";
		f.what.value = "stuck=0.1"; document.querySelector("#faults form button").click(); })()`)
	iced := p.statedTick("fault ice")
	for _, page := range []*tab{p, q} {
		for _, c := range []struct {
			name   string
			tick   int64
			before string
			after  string
		}{{"mu_left", slid, "0.8000", "0.3000"}, {"mu_right", iced, "0.8000", "0.1000"}} {
			if was, is := page.around(c.name, c.tick); is != c.after || was != c.before {
				t.Errorf("%s is %s at tick %d and %s before it; want %s and %s", c.name, is, c.tick, was, c.after, c.before)
			}
		}
		page.await(`document.querySelector("#faults .row.active code")?.textContent.includes("mu_right")`)
		page.await(`document.getElementById("warnings").textContent.includes("1 fault active")`)
	}
	p.await(fmt.Sprintf(`document.querySelector("#faults .row.active").textContent.includes("since tick %d")`, iced))
	p.shoot("fault")

	stop()
	for _, page := range []*tab{p, q} {
		page.await(`document.getElementById("alert").textContent.includes("The run has ended")`)
	}
	table := filepath.Join(t.TempDir(), "run.csv")
	lab.MustRun(t, "export", record, "-o", table)
	text, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	head := strings.Split(lines[0], ",")
	at := func(name string, tick int64) string {
		for _, line := range lines[1:] {
			cells := strings.Split(line, ",")
			var seconds float64
			if _, err := fmt.Sscan(cells[0], &seconds); err == nil && int64(seconds*100+0.5) == tick {
				for i, h := range head {
					if strings.HasPrefix(h, name+"[") {
						return cells[i]
					}
				}
			}
		}
		return "missing"
	}
	for _, c := range []struct {
		name string
		tick int64
		want string
	}{{"mu_left", slid, "0.3"}, {"mu_left", slid - 1, "0.8"}, {"mu_right", iced, "0.1"}, {"mu_right", iced - 1, "0.8"}} {
		if got := at(c.name, c.tick); got != c.want {
			t.Errorf("record: %s is %s at tick %d, want %s", c.name, got, c.tick, c.want)
		}
	}
}

// The button in the head ends the record of the run and starts another one, which replays.
func TestButtonOfThePageEndsAndStartsARecord(t *testing.T) {
	b := newBrowser(t)
	url, first, stop := run(t, "truck-bench")
	p := b.openPage(url, 1600, 1000, false)
	press := `document.getElementById("recording").click(); 0`
	says := func(text string) {
		p.await(fmt.Sprintf(`document.getElementById("recording")?.textContent === %q`, text))
	}
	second := filepath.Join(t.TempDir(), "second.rec")
	says("end record")
	p.eval(press)
	ended := p.statedTick("record off")
	says("record…")
	p.eval(press)
	says("start record")
	p.eval(fmt.Sprintf(`document.querySelector("#recording + input").value = %q; 0`, second))
	p.eval(press)
	begun := p.statedTick("record on")
	says("end record")
	if begun <= ended {
		t.Errorf("the second record begins at tick %d, the first one has ended at %d", begun, ended)
	}
	p.eval(press)
	says("record…")
	stop()
	for _, record := range []string{first, second} {
		lab.MustRun(t, "replay", record)
	}
}

// A switch of a flag turns it off and on.
func TestSwitchOfThePageChangesAFlag(t *testing.T) {
	b := newBrowser(t)
	url, _, _ := run(t, filepath.Join(writeOwnFiles(t, ""), "own.yaml"))
	p := b.openPage(url, 1600, 1000, false)
	const ignition = `document.querySelector("#inputs [role=switch][aria-label=ignition]")`
	for _, state := range []string{"true", "false", "true"} {
		p.await(ignition + `?.getAttribute("aria-checked") === "` + state + `"`)
		want := map[string]string{"true": "1", "false": "0"}[state]
		p.await(`lockstep.signals.values.get("ignition") === ` + want)
		p.await(`Math.abs(lockstep.signals.values.get("T_drive") - 60 * ` + want + `) < 1e-6`)
		p.eval(ignition + ".click(); 0")
	}
	p.shoot("switch")
}

// An input that follows a table of the plant file has the value of the table, and its row says so until it is set.
func TestInputThatFollowsTheTableOfThePlantFile(t *testing.T) {
	b := newBrowser(t)
	url, _, _ := run(t, filepath.Join(writeOwnFiles(t, ""), "transfer.yaml"))
	p := b.openPage(url, 1024, 1000, false)
	const row = `[...document.querySelectorAll("#inputs .row")].find((r) => r.textContent.startsWith("torque"))`
	p.await(row + `.querySelector("small").textContent === "follows the plant file's table"`)
	p.await(`lockstep.signals.values.get("torque") > 121 && Math.abs(lockstep.signals.values.get("torque") - lockstep.signals.values.get("T_drive")) < 3`)
	p.await(`Math.abs(Number(` + row + `.querySelector("input[type=range]").value) - lockstep.signals.values.get("torque")) < 12`) // rises by 30 per s
	p.eval(`(() => { const s = ` + row + `.querySelector("input[type=number]"); s.value = 50; s.dispatchEvent(new Event("change")); })()`)
	p.await(`lockstep.signals.values.get("torque") === 50 && ` + row + `.querySelector("small").hidden`)
	p.shoot("follows")
}

// The lever of a car is a list of the gears that the database names.
func TestLeverOfThePageIsAList(t *testing.T) {
	b := newBrowser(t)
	url, _, _ := run(t, "automatic-bench")
	p := b.openPage(url, 1000, 1000, false)
	const lever = `document.querySelector("#inputs select[aria-label=lever]")`
	p.await(lever + `?.value === "0"`)
	p.eval(`(() => { const s = ` + lever + `; s.value = 2; s.dispatchEvent(new Event("change")); })()`)
	p.await(`lockstep.signals.values.get("lever") === 2 && lockstep.signals.values.get("lever") === Number(` + lever + `.value)`)
	p.await(`document.getElementById("message").textContent.startsWith("lever N: from tick")`)
	p.await(`Boolean(document.querySelector("#inputs [role=switch][aria-label=ignition]"))`)
	p.shoot("lever")
}

// The ignition of a bench has one control on the page, which the signal of the bus follows.
func TestIgnitionOfThePageIsASelector(t *testing.T) {
	b := newBrowser(t)
	url, _, _ := run(t, "automatic-bench")
	p := b.openPage(url, 1000, 1000, false)
	const selector = `document.querySelector("#inputs select[aria-label=ignition]")`
	p.await(selector + `?.value === "run" && !` + selector + `.hidden`)
	p.eval(`lockstep.signals.want("test", ["Pedals.ignition"]); 0`)
	for i, state := range []string{"off", "standby", "ignition", "crank", "run"} {
		p.eval(fmt.Sprintf(`(() => { const s = %s; s.value = %q; s.dispatchEvent(new Event("change")); })()`, selector, state))
		p.await(fmt.Sprintf(`document.getElementById("message").textContent.startsWith("ignition %s: from tick")`, state))
		p.await(fmt.Sprintf(`lockstep.signals.values.get("Pedals.ignition") === %d`, i+1))
	}
	p.await(`![...document.querySelectorAll("#inputs .row")].some((r) => r.textContent.startsWith("Pedals.ignition"))`)
	p.shoot("ignition")
}

// The trigger stops the picture at a shift, with a quarter of the window after it.
func TestTriggerCatchesAShift(t *testing.T) {
	b := newBrowser(t)
	url, _, _ := run(t, "powershift-bench")
	p := b.openPage(url, 1600, 1000, false)
	p.eval(`(() => { const set = (e, v) => { e.value = v; e.dispatchEvent(new Event("change")); };
		set(document.querySelector("#scope input"), "clutch8.pressure");
		set(document.querySelector("#scope [aria-label=window]"), 2);
		set(document.querySelector("#scope [aria-label='trigger level']"), 12);
		set(document.querySelector("#scope [aria-label='trigger signal']"), "clutch8.pressure"); })()`)
	p.await(`document.querySelector("#scope .buttons button").textContent === "Go on"`)
	p.await(`document.querySelector("#scope .readout").textContent.startsWith("A ")`) // drawn with the next frame
	text := p.eval(`document.querySelector("#scope .readout").textContent`)
	var at float64
	if _, err := fmt.Sscanf(text, "A %g s", &at); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	value := func(t float64) string {
		return p.eval(fmt.Sprintf(`(() => { const r = lockstep.signals.rings.get("clutch8.pressure"); return r.last(r.after(%g) - 1) > 12; })()`, t))
	}
	if value(at) != "true" || value(at-0.03) != "false" {
		t.Errorf("no crossing at %g s", at)
	}
	p.shoot("trigger")

	p.eval("location.reload(); 0") // the layout of the bench has the trigger
	p.await(`document.querySelector("#scope [aria-label='trigger signal']")?.value === "clutch8.pressure"`)
	p.await(`document.querySelector("#scope [aria-label='trigger level']")?.value === "12"`)
	p.await(`document.querySelector("#scope .readout")?.textContent.startsWith("A ")`) // armed
}

// A page goes on after the supervisor was replaced by attach: it is at the same address.
func TestPageReconnectsAfterAttach(t *testing.T) {
	dir := writeOwnFiles(t, "end: {supervisor_gone: continue}\n")
	b := newBrowser(t)
	run := start(t, dir, "run", filepath.Join(dir, "own.yaml"), "-besteffort", "-page", "0")
	p := b.openPage(run.url, 1600, 1000, false)
	if err := run.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	run.stop() // waits for the process
	p.await(`document.getElementById("state").textContent === "disconnected"`)
	p.await(`document.getElementById("alert").textContent.startsWith("Disconnected")`)
	p.shoot("disconnected")
	before := p.eval("lockstep.signals.tick")
	next := start(t, dir, "attach", "own-bench")
	if next.url != run.url {
		t.Errorf("the page was at %s, now at %s", run.url, next.url)
	}
	p.await(`document.getElementById("state").textContent === "running"`)
	p.await("lockstep.signals.tick > " + before + " + 20")
	p.await(`document.querySelector("#runs b")?.textContent === "own-bench"`)
	next.stop()
	p.await(`document.getElementById("alert").textContent.includes("The run has ended")`)
}
