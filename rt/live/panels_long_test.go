//go:build long

package live

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// door returns an expression of the answer a of the door.
func (p *tab) door(path, expression string) string {
	p.t.Helper()
	return p.eval(fmt.Sprintf(`fetch("door/%s", { headers: { Authorization: "Bearer " + new URLSearchParams(location.search).get("token") } }).then((r) => r.json()).then((a) => %s)`, path, expression))
}

// pageText returns the text of the first element that a selector finds.
func (p *tab) pageText(selector string) string {
	p.t.Helper()
	return p.eval(fmt.Sprintf("document.querySelector(%q)?.textContent ?? ''", selector))
}

// The bus panel shows each message with its cycle and age, and the bits of the chosen frame give its values.
func TestBusPanelShowsMessagesAndTheBitsOfAFrame(t *testing.T) {
	b := newBrowser(t)
	url, _, _ := run(t, "truck-bench")
	p := b.openPage(url, 1600, 1000, false)
	p.await(`document.querySelectorAll("#bus .message").length > 8`)
	const row = `[...document.querySelectorAll("#bus .message")].find((r) => r.textContent.includes("EEC1"))`
	p.eval(row + ".click(); 0")
	p.await(row + `.querySelector(".cycle").textContent > "0"`)
	p.await(`document.querySelector("#bus .bits h3").textContent === "EEC1"`)
	p.await(`document.querySelectorAll("#bus td.one").length > 0`)
	// EngSpeed is in the bytes 3 and 4, 0.125 rpm per bit; the bits and the value are of one frame.
	p.await(`(() => { const rows = [...document.querySelectorAll("#bus tbody tr")];
		const byte = (k) => [...rows[k].querySelectorAll("td:not(.hex)")].reduce((n, c) => 2 * n + Number(c.textContent), 0);
		const v = [...document.querySelectorAll("#bus .values .row")].find((r) => r.textContent.includes("EngSpeed")).querySelector("b").textContent;
		const want = (byte(3) + 256 * byte(4)) * 0.125;
		return want > 100 && Math.abs(Number(v) - want) < 0.02 && rows[3].querySelector(".hex").textContent === byte(3).toString(16).toUpperCase().padStart(2, "0"); })()`)
	p.eval(`(() => { const f = document.querySelector("#bus input"); f.value = "18febf0b"; f.dispatchEvent(new Event("input")); })()`)
	if n := p.eval(`[...document.querySelectorAll("#bus .message")].filter((r) => !r.hidden).length`); n != "1" {
		t.Errorf("the filter leaves %s messages", n)
	}
	p.eval(`(() => { const f = document.querySelector("#bus input"); f.value = ""; f.dispatchEvent(new Event("input"));
		` + row + `.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true })); })()`)
	if next := p.pageText("#bus .bits h3"); next == "EEC1" || next == "" {
		t.Errorf("the arrow key has chosen %q", next)
	}
	// a fault that drops a message makes it old
	p.eval(`(() => { const f = document.querySelector("#faults form").elements; f.name.value = "mute"; f.where.value = "frame=EEC1";
		f.what.value = "drop"; document.querySelector("#faults form button").click(); })()`)
	p.statedTick("fault mute")
	p.await(row + `.querySelector(".age").classList.contains("bad")`)
	p.eval(row + ".click(); 0")
	p.await(`document.querySelector("#bus .bits .bad").textContent.includes("kept back by a fault")`)
	p.shoot("bus")
}

// A parameter acts at the tick that its row states, and a refusal is shown there.
func TestParameterActsAtTheTickThatThePageStates(t *testing.T) {
	b := newBrowser(t)
	url, _, _ := run(t, "powershift-bench")
	p := b.openPage(url, 1600, 1000, false)
	p.eval(`(() => { const s = document.querySelector("#scope input"); s.value = "mu_oil"; s.dispatchEvent(new Event("change")); lockstep.signals.setEvery("tick"); })()`)
	p.await(`lockstep.signals.rings.get("mu_oil")?.n > 50`)
	p.eval(`(() => { const s = document.querySelector("#parameters input[type=range]"); s.value = 0.15; s.dispatchEvent(new Event("input")); s.dispatchEvent(new Event("change")); })()`)
	p.await(`document.querySelector("#parameters .answer").textContent.startsWith("in effect from tick")`)
	var tick int64
	if _, err := fmt.Sscanf(p.pageText("#parameters .answer"), "in effect from tick %d", &tick); err != nil {
		t.Fatal(err)
	}
	p.await(fmt.Sprintf("lockstep.signals.tick > %d", tick))
	at := func(k int64) string {
		return p.eval(fmt.Sprintf(`(() => { const r = lockstep.signals.rings.get("mu_oil"); return r.last(r.after(%g) - 1).toFixed(3); })()`, float64(k)*0.005+0.0025))
	}
	if was, is := at(tick-1), at(tick); was != "0.100" || is != "0.150" {
		t.Errorf("mu_oil is %s before tick %d and %s at it", was, tick, is)
	}
	p.eval(`(() => { const s = document.querySelector("#parameters input[type=number]"); s.value = 0.5; s.dispatchEvent(new Event("change")); })()`)
	p.await(`document.querySelector("#parameters .answer.bad")?.textContent.includes("outside")`)
	p.await(`document.querySelector("#parameters .row b").textContent === "0.150"`)
	p.shoot("parameters")
}

// Expectations are judged on the page while the run lasts.
func TestScenarioIsJudgedOnThePage(t *testing.T) {
	dir := writeOwnFiles(t, "")
	text := "scenario: watch\nfor: 300 s\nexpect:\n  - {name: early, value: n_motor, above: -1e5 rpm, from: 1 s, to: 2 s}\n" +
		"  - {name: wrong, value: n_motor, above: 1e5 rpm, from: 1 s, to: 2 s}\n  - {name: late, value: n_motor, above: -1e5 rpm, from: 1 s, to: 299 s}\n"
	if err := os.WriteFile(filepath.Join(dir, "watch.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t)
	url, _, _ := run(t, filepath.Join(dir, "own.yaml"), "-scenario", filepath.Join(dir, "watch.yaml"))
	p := b.openPage(url, 1600, 1000, false)
	for state, name := range map[string]string{"held": "early", "broken": "wrong", "open": "late"} {
		p.await(fmt.Sprintf(`document.querySelector("#scenario .row.%s .name")?.textContent === %q`, state, name))
	}
	p.await(`document.getElementById("warnings").textContent.includes("1 expectation broken")`)
	p.shoot("scenario")
}

// The page says stale while the target stands still, and best effort.
func TestPageSaysStaleAndBestEffort(t *testing.T) {
	dir := writeOwnFiles(t, "")
	b := newBrowser(t)
	run := start(t, dir, "run", filepath.Join(dir, "own.yaml"), "-besteffort", "-page", "0")
	p := b.openPage(run.url, 1600, 1000, false)
	p.await(`document.querySelector("#warnings .loud")?.textContent === "best effort"`)
	target, err := strconv.Atoi(p.door("status", "a.run.target"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(target, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(40 * time.Second); p.pageText("#state") != "stale" && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	alert := p.pageText("#alert")
	p.shoot("stale")
	if err := syscall.Kill(target, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(alert, "Stale: no sample for") {
		t.Errorf("the page says %q", alert)
	}
}

// The page says replay if a log takes the place of the control unit.
func TestPageSaysReplay(t *testing.T) {
	dir := writeOwnFiles(t, "")
	text := strings.Replace(ownFiles["own.yaml"], "interface: pair", "interface: \"file:"+filepath.Join(dir, "own.log")+"\"", 1)
	if err := os.WriteFile(filepath.Join(dir, "own.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "own.log"), []byte("(1.000000) can0 123#0011\n(1.010000) can0 123#0011\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t)
	url, _, _ := run(t, filepath.Join(dir, "own.yaml"))
	p := b.openPage(url, 1600, 1000, false)
	p.await(`document.querySelector("#warnings .replay")?.textContent === "replay"`)
	p.shoot("replay")
}

// The runs of this host are listed, and a link leads from the page of one to that of another.
func TestPageLeadsToTheOtherRunsOfThisHost(t *testing.T) {
	b := newBrowser(t)
	dir := t.TempDir()
	first := start(t, dir, "run", patient(t, "powershift-bench"), "-besteffort", "-page", "0")
	second := start(t, dir, "run", patient(t, "truck-bench"), "-besteffort", "-page", "0")
	p := b.openPage(first.url, 1600, 1000, false)
	const link = `[...document.querySelectorAll("#runs a")].find((a) => a.textContent === "truck-bench")`
	p.await(fmt.Sprintf(`%s?.href === %q`, link, second.url))
	p.shoot("runs")
	p.eval(link + ".click(); 0")
	p.await(`document.getElementById("bench")?.textContent === "truck-bench" && Boolean(window.lockstep?.signals.tick)`)
}
