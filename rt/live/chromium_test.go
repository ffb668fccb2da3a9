package live

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"lockstep/hil_test/lab"
)

// patience is how long the tests wait for what must happen. A loaded host may be slow.
const patience = 4 * time.Minute

func TestMain(m *testing.M) { lab.Main(m) }

// browser is Debian's Chromium, driven through its DevTools protocol over two pipes.
type browser struct {
	t       *testing.T
	to      *os.File
	mu      sync.Mutex // guards the fields below, and writes to to
	last    int
	answers map[int]chan reply

	exceptions []string // that no code of a page has caught
}

// reply is the answer to a command of the protocol, or an event.
type reply struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Method string          `json:"method"` // of an event
	Params json.RawMessage `json:"params"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// newBrowser starts Chromium; it ends with the test.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	lab.RequireLong(t, "drives a browser")
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
	home, err := os.MkdirTemp("", "chromium") // t.TempDir fails if a process of the browser still writes when the test ends
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, "--headless=new", "--no-sandbox", "--remote-debugging-pipe", "--user-data-dir="+home,
		"--disable-gpu", "--no-first-run", "--disable-extensions", "--disable-background-timer-throttling",
		"--disable-renderer-backgrounding", "--disable-dev-shm-usage", "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+home)
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
		_ = os.RemoveAll(home)
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, e := range b.exceptions {
			t.Errorf("the page has failed: %s", e)
		}
	})
	return b
}

// read gives each answer to the command that waits for it, and keeps the exceptions of the pages.
func (b *browser) read(from *os.File) {
	defer from.Close()
	for in := bufio.NewReaderSize(from, 1<<20); ; {
		text, err := in.ReadBytes(0)
		if err != nil {
			return
		}
		var r reply
		if json.Unmarshal(text[:len(text)-1], &r) != nil {
			continue
		}
		b.mu.Lock()
		if r.Method == "Runtime.exceptionThrown" {
			b.exceptions = append(b.exceptions, string(r.Params))
		}
		if answer := b.answers[r.ID]; answer != nil {
			answer <- r
			delete(b.answers, r.ID)
		}
		b.mu.Unlock()
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
	case <-time.After(patience):
		return nil, fmt.Errorf("%s: no answer in %v", method, patience)
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
	b.must(p.session, "Runtime.enable", nil)
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
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if p.eval(expression) == "true" {
			return
		}
	}
	p.t.Fatalf("%s is not true; the page says %.4000q", expression, p.eval("document.body.innerText"))
}

// shoot writes a picture of the tab to the folder of the test's output, with go test -artifacts.
func (p *tab) shoot(name string) {
	p.t.Helper()
	p.capture(name, map[string]any{"format": "png", "captureBeyondViewport": false})
}

// capture writes the picture that the browser makes with params.
func (p *tab) capture(name string, params map[string]any) {
	p.t.Helper()
	if kept := flag.Lookup("test.artifacts"); kept == nil || kept.Value.String() != "true" {
		return
	}
	dir := p.t.ArtifactDir()
	var r struct{ Data string }
	result := p.must(p.session, "Page.captureScreenshot", params)
	_ = json.Unmarshal(result, &r)
	data, err := base64.StdEncoding.DecodeString(r.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), data, 0o644)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// run starts a bench with a page and returns the address of the page, the name of the record, and a function
// that ends the run. The bench bears stalls of a loaded host.
func run(t *testing.T, name string, more ...string) (url, record string, stop func()) {
	t.Helper()
	if !strings.HasSuffix(name, ".yaml") {
		name = patient(t, name)
	}
	r := start(t, t.TempDir(), append([]string{"run", name, "-besteffort", "-page", "0", "-record", filepath.Join(t.TempDir(), "run.rec")}, more...)...)
	return r.url, r.args[6], r.stop
}

// patient writes an embedded bench to a file, with limits for stalls as of a loaded host, and returns its name.
func patient(t *testing.T, name string) string {
	t.Helper()
	text := regexp.MustCompile(`(?m)^overrun: .*$`).ReplaceAllString(lab.MustRun(t, "plants", name), "overrun: skip 1000\nwatchdog: 60 s")
	file := filepath.Join(t.TempDir(), name+".yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
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
	cmd := exec.Command(lab.Command(t), args...)
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
overrun: skip 1000
watchdog: 60 s
buses: {drive: {interface: pair, database: train.dbc, frames: {Speeds: {cycle: 10 ms}}, send: [car1.v -> Speeds.v]}}
`,
	"train.dbc": `BU_: Bench Unit
BO_ 512 Speeds: 8 Bench
 SG_ v : 0|32@1- (0.0001,0) [-200000|200000] "m/s" Unit
`,
	"own.yaml": `bench: own-bench
plant: hoist.yaml
period: 5 ms
overrun: skip 1000
watchdog: 60 s
buses: {drive: {interface: pair, database: own.dbc, frames: {Speeds: {cycle: 10 ms}}, send: [n_motor -> Speeds.n]}}
`,
	"own.dbc": `BU_: Bench Unit
BO_ 512 Speeds: 8 Bench
 SG_ n : 0|32@1- (0.01,0) [-20000000|20000000] "rpm" Unit
`,
	"hoist.yaml": `plant: hoist
inputs:
  ignition: {unit: 1, flag: true, default: 1}
  demand: {unit: N.m, min: -200, max: 200, default: 60}
  clutch: {unit: bar, min: 0, max: 20, default: 6}
  brake: {unit: bar, min: 0, max: 20}
elements:
  motor: {type: inertia, J: 0.2 kg.m2, w_start: 1500 rpm}
  drive: {type: torque, flange: motor, tau: {product: [1, demand, ignition]}}
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
	"transfer.yaml": `bench: transfer-bench
plant: transfer-case.yaml
period: 5 ms
overrun: skip 1000
watchdog: 60 s
buses: {drive: {interface: pair, database: own.dbc, frames: {Speeds: {cycle: 10 ms}}, send: [n_in -> Speeds.n]}}
`,
	"transfer-case.yaml": `plant: transfer-case
about: Transfer case, a range set, a centre differential, a chain to the front axle, a pump on a branch
inputs:
  torque: {unit: N.m, min: -300, max: 300, default: {table: [[0, 120], [4, 240], [8, 120]]}}
  low.pressure: {unit: bar, min: 0, max: 20, default: {table: [[0, 18], [6, 18], [6.3, 0]]}}
  high.pressure: {unit: bar, min: 0, max: 20, default: {table: [[6, 0], [6.8, 18]]}}
  lock.pressure: {unit: bar, min: 0, max: 20, default: 3}
  pump.pressure: {unit: bar, min: 0, max: 20, default: 8}
  brake.pressure: {unit: bar, min: 0, max: 150}
elements:
  motor: {type: inertia, J: 0.25 kg.m2, w_start: 1200 rpm}
  drive: {type: torque, flange: motor, tau: torque}
  damper: {type: spring_damper, a: motor, b: sun, c: 3000 N.m/rad, d: 6 N.m.s/rad}
  sun: {type: inertia, J: 0.01 kg.m2}
  range: {type: ideal_planetary, sun: sun, carrier: carrier, ring: ring, ratio: 1.7}
  ring: {type: inertia, J: 0.03 kg.m2}
  carrier: {type: inertia, J: 0.05 kg.m2}
  low: {type: brake, flange: ring, mu: 0.12, cgeo: 0.8 m, area: 80 cm2, pressure: low.pressure}
  high: {type: clutch, a: sun, b: carrier, mu: 0.12, cgeo: 0.8 m, area: 80 cm2, pressure: high.pressure}
  centre: {type: ideal_planetary, sun: sprocket, ring: carrier, carrier: rear_shaft, ratio: 2}
  sprocket: {type: inertia, J: 0.01 kg.m2}
  lock: {type: clutch, a: sprocket, b: rear_shaft, mu: 0.12, cgeo: 0.8 m, area: 40 cm2, pressure: lock.pressure}
  chain: {type: ideal_gear, a: sprocket, b: chain_wheel, ratio: 1.05}
  slack: {type: elasto_backlash, a: chain_wheel, b: front_shaft, c: 4000 N.m/rad, d: 12 N.m.s/rad, backlash: 0.4 deg}
  front_shaft: {type: inertia, J: 0.02 kg.m2}
  front_drive: {type: ideal_gear, a: front_shaft, b: front_axle, ratio: 3.9}
  front_axle: {type: inertia, J: 40 kg.m2}
  rear_shaft: {type: inertia, J: 0.02 kg.m2}
  rear_drive: {type: ideal_gear, a: rear_shaft, b: rear_axle, ratio: 3.7}
  rear_axle: {type: inertia, J: 90 kg.m2}
  rear_brake: {type: brake, flange: rear_axle, mu: 0.35, cgeo: 0.6 m, area: 20 cm2, pressure: brake.pressure}
  front_air: {type: quadratic_speed_dependent_torque, flange: front_axle, tau_nominal: -250, w_nominal: 60}
  rear_air: {type: quadratic_speed_dependent_torque, flange: rear_axle, tau_nominal: -500, w_nominal: 60}
  pump_gear: {type: ideal_gear, a: motor, b: pump_shaft, ratio: 0.8}
  pump_clutch: {type: clutch, a: pump_shaft, b: pump, mu: 0.12, cgeo: 0.4 m, area: 20 cm2, pressure: pump.pressure}
  pump: {type: inertia, J: 0.01 kg.m2}
  pump_load: {type: linear_speed_dependent_torque, flange: pump, tau_nominal: -20, w_nominal: 150}
outputs:
  n_in: {speed: motor, unit: rpm}
  n_ring: {speed: ring, unit: rpm}
  n_carrier: {speed: carrier, unit: rpm}
  n_front: {speed: front_axle, unit: rpm}
  n_rear: {speed: rear_axle, unit: rpm}
  n_pump: {speed: pump, unit: rpm}
  T_drive: {torque: drive}
  T_damper: {torque: damper}
  T_slack: {torque: slack}
`,
}

// openPage opens the page of a run and waits until it shows values.
func (b *browser) openPage(url string, width, height int, dark bool) *tab {
	b.t.Helper()
	p := b.open(url, width, height, dark)
	p.await("Boolean(window.lockstep && lockstep.signals.tick)")
	return p
}

// writeOwnFiles writes the benches that are not embedded to a folder; own-bench has further lines.
func writeOwnFiles(t *testing.T, own string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range ownFiles {
		text = strings.Replace(text, "overrun: skip 1000\n", "overrun: skip 1000\n"+own, 1)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A picture that is fitted to the width changes the height of the page. The scroll bar that comes with the height takes
// no width, else the two would change each other without end.
func TestPictureIsFittedToANarrowPageOfAnyHeight(t *testing.T) {
	b := newBrowser(t)
	url, _, _ := run(t, "automatic-bench")
	p := b.openPage(url, 400, 300, false)
	p.await(`document.querySelectorAll("#plant svg text.value").length > 0`)
	p.eval(`document.querySelector("#tabs [data-panel=plant]").click(); 0`)
	const width = `document.querySelector("main").clientWidth`
	p.await(`document.documentElement.scrollHeight > innerHeight`)
	low := p.eval(width)
	p.size(400, 3000, false)
	p.await(`document.documentElement.scrollHeight <= innerHeight`)
	if high := p.eval(width); high != low {
		t.Errorf("the panels are %s px wide with a scroll bar and %s px without", low, high)
	}
	p.size(400, 1000, false) // with the automatic bench the scroll bar comes and goes
	p.await(`(() => { const c = document.querySelector("#plant .picture"); return innerHeight === 1000 && c.scrollWidth <= c.clientWidth; })()`)
}
