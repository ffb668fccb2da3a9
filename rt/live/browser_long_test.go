//go:build long

package live

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// browser is Debian's Chromium, driven through its DevTools protocol over two pipes.
type browser struct {
	t       *testing.T
	to      *os.File
	mu      sync.Mutex // guards the fields below, and writes to to
	last    int
	answers map[int]chan reply
}

// reply is the answer to a command of the protocol.
type reply struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// newBrowser starts Chromium; it ends with the test.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	name, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("the package chromium is missing: apt-get install --no-install-recommends chromium")
	}
	theirs, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, "--headless=new", "--no-sandbox", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir(),
		"--disable-gpu", "--no-first-run", "--disable-extensions", "--disable-background-timer-throttling",
		"--disable-renderer-backgrounding", "--disable-dev-shm-usage", "about:blank")
	cmd.ExtraFiles = []*os.File{theirs, theirOut} // descriptors 3 and 4
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	theirOut.Close()
	b := &browser{t: t, to: to, answers: map[int]chan reply{}}
	go b.read(from)
	t.Cleanup(func() {
		_, _ = b.send("", "Browser.close", nil)
		to.Close()
		_ = cmd.Wait()
	})
	return b
}

// read gives each answer to the command that waits for it.
func (b *browser) read(from *os.File) {
	defer from.Close()
	for in := bufio.NewReaderSize(from, 1<<20); ; {
		text, err := in.ReadBytes(0)
		if err != nil {
			return
		}
		var r reply
		if json.Unmarshal(text[:len(text)-1], &r) == nil && r.ID > 0 {
			b.mu.Lock()
			b.answers[r.ID] <- r
			b.mu.Unlock()
		}
	}
}

// send sends a command to a page, session "": to the browser, and returns its answer.
func (b *browser) send(session, method string, params any) (json.RawMessage, error) {
	if params == nil {
		params = struct{}{}
	}
	b.mu.Lock()
	b.last++
	id, answer := b.last, make(chan reply, 1)
	b.answers[id] = answer
	text, _ := json.Marshal(map[string]any{"id": id, "method": method, "params": params, "sessionId": session})
	if session == "" {
		text, _ = json.Marshal(map[string]any{"id": id, "method": method, "params": params})
	}
	_, err := b.to.Write(append(text, 0))
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case r := <-answer:
		if r.Error != nil {
			return nil, fmt.Errorf("%s: %s", method, r.Error.Message)
		}
		return r.Result, nil
	case <-time.After(time.Minute):
		return nil, fmt.Errorf("%s: no answer", method)
	}
}

// tab is a page in the browser.
type tab struct {
	*browser
	session string
}

// open opens an address in a tab of a width and height, CSS pixels.
func (b *browser) open(url string, width, height int, dark bool) *tab {
	b.t.Helper()
	var made struct{ TargetID, SessionID string }
	result := b.must("", "Target.createTarget", map[string]any{"url": "about:blank"})
	_ = json.Unmarshal(result, &made)
	result = b.must("", "Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true})
	_ = json.Unmarshal(result, &made)
	p := &tab{b, made.SessionID}
	p.size(width, height, dark)
	b.must(p.session, "Page.navigate", map[string]any{"url": url})
	return p
}

func (b *browser) must(session, method string, params any) json.RawMessage {
	b.t.Helper()
	result, err := b.send(session, method, params)
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

// size sets the size and the colours of a tab.
func (p *tab) size(width, height int, dark bool) {
	p.t.Helper()
	p.must(p.session, "Emulation.setDeviceMetricsOverride", map[string]any{
		"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false})
	scheme := map[string]any{"name": "prefers-color-scheme", "value": map[bool]string{true: "dark", false: "light"}[dark]}
	p.must(p.session, "Emulation.setEmulatedMedia", map[string]any{"features": []any{scheme}})
}

// eval returns the value of an expression in the page, as text.
func (p *tab) eval(expression string) string {
	p.t.Helper()
	var r struct {
		Result struct {
			Value any
		}
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	result := p.must(p.session, "Runtime.evaluate", map[string]any{
		"expression": expression, "awaitPromise": true, "returnByValue": true})
	if err := json.Unmarshal(result, &r); err != nil {
		p.t.Fatal(err)
	}
	if r.ExceptionDetails != nil {
		p.t.Fatalf("%s: %s", expression, r.ExceptionDetails.Exception.Description)
	}
	return fmt.Sprint(r.Result.Value)
}

// await waits until an expression is true.
func (p *tab) await(expression string) {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if p.eval(expression) == "true" {
			return
		}
	}
	p.t.Fatalf("%s is not true; the page says %.4000q", expression, p.eval("document.body.innerText"))
}

// shoot writes a picture of the tab to the folder of the environment variable LOCKSTEP_SCREENSHOTS.
func (p *tab) shoot(name string) {
	p.t.Helper()
	dir := os.Getenv("LOCKSTEP_SCREENSHOTS")
	if dir == "" {
		return
	}
	var r struct{ Data string }
	result := p.must(p.session, "Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": false})
	_ = json.Unmarshal(result, &r)
	data, err := base64.StdEncoding.DecodeString(r.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), data, 0o644)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "live")
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "lockstep")
	out, err := exec.Command("go", "build", "-o", binary, "lockstep/rt/cmd/lockstep").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return binary, nil
})

// run starts a bench with a page and returns the address of the page, the name of the record, and a function
// that ends the run.
func run(t *testing.T, name string, more ...string) (url, record string, stop func()) {
	t.Helper()
	r := start(t, t.TempDir(), append([]string{"run", name, "-besteffort", "-page", "0", "-record", filepath.Join(t.TempDir(), "run.rec")}, more...)...)
	return r.url, r.args[6], r.stop
}

// started is a supervisor with a page.
type started struct {
	url  string
	args []string
	cmd  *exec.Cmd
	stop func() // ends the run
}

// start starts a command that supervises a run; dir is the folder of its socket.
func start(t *testing.T, dir string, args ...string) *started {
	t.Helper()
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	t.Cleanup(stop)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if found, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), "live: "); ok {
			go func() {
				for lines.Scan() {
				}
			}()
			return &started{found, args, cmd, stop}
		}
	}
	t.Fatal("the run has printed no address")
	return nil
}

// files are benches that are not embedded: a train, and a gearbox of our reader's own.
var ownFiles = map[string]string{
	"train.yaml": `bench: train-bench
plant: train3
period: 10 ms
overrun: skip 100
buses: {drive: {interface: pair, database: train.dbc, frames: {Speeds: {cycle: 10 ms}}, send: [car1.v -> Speeds.v]}}
`,
	"train.dbc": `BU_: Bench Unit
BO_ 512 Speeds: 8 Bench
 SG_ v : 0|32@1- (0.0001,0) [-200000|200000] "m/s" Unit
`,
	"own.yaml": `bench: own-bench
plant: hoist.yaml
period: 5 ms
overrun: skip 200
buses: {drive: {interface: pair, database: own.dbc, frames: {Speeds: {cycle: 10 ms}}, send: [n_motor -> Speeds.n]}}
`,
	"own.dbc": `BU_: Bench Unit
BO_ 512 Speeds: 8 Bench
 SG_ n : 0|32@1- (0.01,0) [-20000000|20000000] "rpm" Unit
`,
	"hoist.yaml": `plant: hoist
inputs:
  demand: {unit: N.m, min: -200, max: 200, default: 60}
  clutch: {unit: bar, min: 0, max: 20, default: 6}
  brake: {unit: bar, min: 0, max: 20}
elements:
  motor: {type: inertia, J: 0.2 kg.m2, w_start: 1500 rpm}
  drive: {type: torque, flange: motor, tau: demand}
  flex: {type: spring_damper, a: motor, b: pinion, c: 2000 N.m/rad, d: 4 N.m.s/rad}
  pinion: {type: inertia, J: 0.05 kg.m2}
  coupling: {type: clutch, a: pinion, b: sun, mu: 0.12, cgeo: 0.8 m, area: 20 cm2, pressure: clutch}
  sun: {type: inertia, J: 0.02 kg.m2}
  set: {type: ideal_planetary, sun: sun, carrier: drum, ring: ring, ratio: 3}
  ring: {type: inertia, J: 0.1 kg.m2}
  hold: {type: brake, flange: ring, mu: 0.12, cgeo: 0.8 m, area: 100 cm2, pressure: 10 bar}
  drum: {type: inertia, J: 6 kg.m2}
  stop: {type: brake, flange: drum, mu: 0.12, cgeo: 0.8 m, area: 100 cm2, pressure: brake}
  air: {type: quadratic_speed_dependent_torque, flange: drum, tau_nominal: -200, w_nominal: 60}
outputs:
  n_motor: {speed: motor, unit: rpm}
  n_drum: {speed: drum, unit: rpm}
  n_pinion: {speed: pinion, unit: rpm}
  T_flex: {torque: flex}
  T_drive: {torque: drive}
`,
}

// openPage opens the page of a run and waits until it shows values.
func (b *browser) openPage(url string, width, height int, dark bool) *tab {
	b.t.Helper()
	p := b.open(url, width, height, dark)
	p.await("Boolean(window.lockstep && lockstep.signals.tick)")
	return p
}

// The page shows each plant in each size. Nothing is wider than the screen.
func TestPageShowsEachPlantInEachSize(t *testing.T) {
	dir := t.TempDir()
	for name, text := range ownFiles {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := newBrowser(t)
	for _, bench := range []string{"powershift-bench", "truck-bench", filepath.Join(dir, "train.yaml"), filepath.Join(dir, "own.yaml")} {
		name := strings.TrimSuffix(filepath.Base(bench), ".yaml")
		if only := os.Getenv("LOCKSTEP_ONLY"); only != "" && !strings.Contains(name, only) {
			continue
		}
		url, _, stop := run(t, bench)
		p := b.openPage(url, 1600, 1000, false)
		time.Sleep(3 * time.Second) // something to see
		for _, width := range []int{400, 1000, 1600} {
			for _, dark := range []bool{false, true} {
				p.size(width, 1000, dark)
				time.Sleep(500 * time.Millisecond)
				if over := p.eval("document.documentElement.scrollWidth > innerWidth"); over != "false" {
					t.Errorf("%s: the page is wider than the screen of %d px", name, width)
				}
				if n := p.eval("document.querySelectorAll('#plant svg text.value').length"); n == "0" {
					t.Errorf("%s: the picture has no values", name)
				}
				shot := fmt.Sprintf("%s-%d-%s", name, width, map[bool]string{true: "dark", false: "light"}[dark])
				if width > 400 {
					var height int
					_, _ = fmt.Sscan(p.eval("document.documentElement.scrollHeight"), &height)
					p.size(width, height, dark)
					time.Sleep(500 * time.Millisecond)
					p.shoot(shot)
					continue
				}
				p.eval("document.querySelector('#tabs [data-panel=plant]').click(); 0")
				p.await("(() => { const c = document.querySelector('#plant .picture'); return c.scrollWidth <= c.clientWidth; })()")
				for _, panel := range []string{"plant", "scope", "inputs", "parameters", "faults", "bus", "scenario", "clock", "runs"} {
					p.eval("document.querySelector('#tabs [data-panel=" + panel + "]').click(); 0")
					time.Sleep(900 * time.Millisecond) // the panel asks the door
					p.shoot(shot + "-" + panel)
				}
			}
		}
		stop()
	}
}

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

// valueAt returns the value of a signal at a tick of 10 ms as the page has it.
func (p *tab) valueAt(name string, tick int64) string {
	p.t.Helper()
	p.await(fmt.Sprintf("lockstep.signals.tick > %d", tick))
	return p.eval(fmt.Sprintf("(() => { const r = lockstep.signals.rings.get(%q); return r.last(r.after(%g) - 1).toFixed(4); })()",
		name, float64(tick)/100+0.005))
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
			if is, was := page.valueAt(c.name, c.tick), page.valueAt(c.name, c.tick-1); is != c.after || was != c.before {
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
	binary, _ := build()
	table := filepath.Join(t.TempDir(), "run.csv")
	if out, err := exec.Command(binary, "export", record, "-o", table).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
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
}
