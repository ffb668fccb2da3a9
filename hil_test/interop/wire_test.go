package interop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/hil_test/lab"
	"lockstep/io/wire"
	"lockstep/rt/report"
)

// buildBox compiles the box in C.
func buildBox(t *testing.T) string {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		lab.Skip(t, "gcc is missing: apt-get install gcc libc6-dev")
	}
	box := filepath.Join(t.TempDir(), "box")
	out, err := exec.Command(gcc, "-O2", "-Wall", "-Wextra", "-Werror", "-I../../io/wire/c", "-o", box, "testdata/box.c", "-lm").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return box
}

// readEdges returns the times of the edges of each wheel, s, by its name in the lines of a box.
func readEdges(t *testing.T, out string) map[string][]float64 {
	t.Helper()
	list := map[string][]float64{}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "edge" {
			ns, err := strconv.ParseFloat(f[2], 64)
			if err != nil {
				t.Fatal(err)
			}
			list[f[1]] = append(list[f[1]], ns*1e-9)
		}
	}
	return list
}

// path is the angle of a wheel, its speed and its acceleration at an instant, rad and s.
type path func(t float64) (angle, speed, accel float64)

func accelerated(w0, a float64) path {
	return func(t float64) (float64, float64, float64) { return w0*t + a*t*t/2, w0 + a*t, a }
}

// crossings returns the instants from, in s, to until at which a path that only rises or only falls passes a multiple
// of the pitch, found by bisection.
func crossings(p path, pitch, from, until float64) (list []float64) {
	a, _, _ := p(from)
	b, _, _ := p(until)
	rises := b > a
	for n := math.Ceil(min(a, b) / pitch); n*pitch <= max(a, b); n++ {
		lo, hi := from, until
		for range 100 {
			mid := (lo + hi) / 2
			if at, _, _ := p(mid); (at < n*pitch) == rises {
				lo = mid
			} else {
				hi = mid
			}
		}
		list = append(list, hi)
	}
	slices.Sort(list)
	return list
}

// checkEdges compares instants with those of closed forms, s, and returns the median of the differences.
func checkEdges(t *testing.T, name string, got, want []float64, tolerance float64) (median float64) {
	t.Helper()
	if len(got) != len(want) || len(want) == 0 {
		t.Fatalf("%s: %d edges, want %d", name, len(got), len(want))
	}
	var errors []float64
	for i := range want {
		e := math.Abs(got[i] - want[i])
		if !(e <= tolerance) {
			t.Fatalf("%s: edge %d at %.9f s, want %.9f s", name, i, got[i], want[i])
		}
		errors = append(errors, e)
	}
	slices.Sort(errors)
	return errors[len(errors)/2]
}

func TestBoxMakesEveryEdgeUnderJitterAndLoss(t *testing.T) {
	t.Parallel()
	box := buildBox(t)
	const period, length = 0.005, 8.0
	const swing, rate, roll = 0.05, 2 * math.Pi * 2, 50.0
	wheels := []path{
		accelerated(60, 0), accelerated(3, 9), accelerated(-20, -5),
		func(t float64) (float64, float64, float64) {
			s, c := math.Sincos(rate * t)
			return roll*t + swing*s, roll + swing*rate*c, -swing * rate * rate * s
		},
		accelerated(8.01, -2), // turns back at 4.005 s
		accelerated(60, 0),    // tooth 7 has no edge
	}
	turn := 2 * math.Pi
	pitch := turn / 48
	var images bytes.Buffer
	var o wire.Image
	var data [wire.Size]byte
	for k := range int(length/period) + 1 {
		o.Counter, o.Tick = uint64(k), 1e15+int64(k)*5e6
		for i, p := range wheels {
			m := wire.Motion{Teeth: 48, Field: 7}
			m.Angle, m.Speed, m.Accel = p(float64(k) * period)
			if i == 5 {
				m.Missing = 7
			}
			m.Wheel(&o.Wheel[i])
		}
		o.Encode(&data)
		images.Write(data[:])
	}
	cmd := exec.Command(box, "edges")
	cmd.Stdin = &images
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	got := readEdges(t, string(out))

	const rounding = 2e-9 // s; times in an image are rounded to 1 ns
	const start = 1e-9    // an edge at the first image has passed
	end := length - 1e-9
	checkEdges(t, "steady", got["0"], crossings(wheels[0], pitch, start, end), rounding)
	checkEdges(t, "accelerating", got["1"], crossings(wheels[1], pitch, start, end), rounding)
	checkEdges(t, "backward", got["-2"], crossings(wheels[2], pitch, start, end), rounding)
	checkEdges(t, "before turning back", got["4"], crossings(wheels[4], pitch, start, 4.005), 1e-6) // slow there
	checkEdges(t, "after turning back", got["-4"], crossings(wheels[4], pitch, 4.005, end), 1e-6)
	var teeth []float64
	for i, at := range crossings(wheels[5], pitch, start, end) {
		if (i+1)%48 != 6 { // the first edge is number 1
			teeth = append(teeth, at)
		}
	}
	checkEdges(t, "without tooth 7", got["5"], teeth, rounding)

	// The acceleration changes by at most jerk: an image extrapolates over the time until the next one, 1.4 periods
	// and one more for each that is lost.
	jerk := swing * rate * rate * rate
	extrapolated := func(periods float64) float64 { return jerk / 6 * math.Pow(periods*period, 3) / (roll - swing*rate) }
	median := checkEdges(t, "swinging", got["3"], crossings(wheels[3], pitch, start, end), extrapolated(4.4))
	if !(median <= extrapolated(1.4)) {
		t.Errorf("swinging: median error %g s, want at most %g s", median, extrapolated(1.4))
	}
}

const wirePlant = `plant: wheel
inputs:
  inlet: {unit: "1", min: 0, max: 1}
  current: {unit: A, min: 0, max: 5}
  button: {unit: "1", min: 0, max: 1}
elements:
  wheel: {type: inertia, J: 1 kg.m2, w_start: 40 rad/s}
  drive: {type: torque, flange: wheel, tau: 10 N.m}
  caliper: {type: wheel_brake_circuit, master: 100 bar, inlet: inlet, A_inlet: 0.02 mm2, A_outlet: 0.03 mm2,
            C_d: 0.7, rho: 1050 kg/m3, p_transition: 100 Pa, stiffness: 70 bar/cm3}
  coil: {type: gain, u: current, k: 1}
  lamp: {type: gain, u: button, k: 1}
outputs:
  phi: {angle: wheel}
  w: {speed: wheel}
  dw: {acceleration: wheel}
  p: {signal: caliper, unit: bar}
`

const wireBench = `bench: wire
plant: wheel.yaml
period: 5 ms
scheme: complete
overrun: skip 1000
safe: {time: 50 ms, values: {phi: 0, w: 0, dw: 0, p: 0}}
buses:
  box:
    io: {udp: 127.0.0.1:5005}
    units: {Analog0.a0: bar, BoxAnalog0.a0: A}
    frames: {Wheel0: {values: {teeth: 48}}}
    send: [phi -> Wheel0.angle, w -> Wheel0.speed, dw -> Wheel0.accel, p -> Analog0.a0]
    receive: [BoxPwm0.duty0 -> inlet, BoxAnalog0.a0 -> current, BoxDigital.d1 -> button]
    messages: {BoxPwm0: {cycle: 5 ms, timeout: 100 ms, on_timeout: {substitute: {inlet: 0.5}}}}
`

const unitPlant = `plant: axle
inputs:
  inlet: {unit: "1", min: 0, max: 1}
  outlet: {unit: "1", min: 0, max: 1}
  pump: {unit: "1", min: 0, max: 1}
CODES
elements:
LAMPS
  road: {type: speed, flange: shaft, w_ref: 40 rad/s}
  left: {type: inertia, J: 1 kg.m2, w_start: 40 rad/s}
  right: {type: inertia, J: 1 kg.m2, w_start: 40 rad/s}
  roll_left: {type: damper, a: left, b: shaft, d: 10 N.m.s/rad}
  roll_right: {type: damper, a: right, b: shaft, d: 10 N.m.s/rad}
  caliper: {type: wheel_brake_circuit, master: 100 bar, inlet: inlet, outlet: outlet, drain: store,
            A_inlet: 0.1 mm2, A_outlet: 0.4 mm2, stiffness: 70 bar/cm3}
  store: {type: low_pressure_accumulator, p_V: [[0, 0], [0.1 cm3, 2 bar], [6 cm3, 6 bar]], pump: pump, flow: 10 cm3/s}
  disc: {type: brake, flange: left, mu: 0.35, cgeo: 0.24 m, area: 2 cm2, pressure: caliper}
outputs:
  phi_left: {angle: left}
  phi_right: {angle: right}
  w_left: {speed: left}
  w_right: {speed: right}
  dw_left: {acceleration: left}
  dw_right: {acceleration: right}
  p: {signal: caliper, unit: bar}
  p_store: {signal: store, unit: bar}
`

const unitBench = `bench: axle
plant: axle.yaml
period: 5 ms
scheme: complete
overrun: catchup 1000
buses:
  box:
    io: {udp: 127.0.0.1:5005}
    units: {Analog0.a0: Pa, Analog0.a1: Pa}
    frames: {Wheel0: {values: {teeth: 48}}, Wheel1: {values: {teeth: 48}}}
    send: [phi_left -> Wheel0.angle, w_left -> Wheel0.speed, dw_left -> Wheel0.accel, p -> Analog0.a0, p_store -> Analog0.a1,
           phi_right -> Wheel1.angle, w_right -> Wheel1.speed, dw_right -> Wheel1.accel]
    receive: [BoxPwm0.duty0 -> inlet, BoxPwm0.duty1 -> outlet, BoxPwm2.duty8 -> pump, LINKS]
`

// unitFaults are the faults by wire in the order of the trouble codes of the unit, in turn; a fault is a list of
// targets with kinds.
var unitFaults = []struct {
	name string
	on   []string
	last float64 // s
}{
	{"sensor open", []string{"signal: Wheel0.state, open: true"}, 0.3},
	{"sensor short", []string{"signal: Wheel0.state, short: ground"}, 0.3},
	{"wrong tooth", []string{"signal: Wheel1.missing, stuck: 7"}, 0.8},
	{"air gap", []string{"signal: Wheel1.weak, stuck: 16"}, 0.3},
	{"wrong direction", []string{"signal: Wheel1.reversed, stuck: 1"}, 0.3},
	{"swapped wheels", []string{"signal: Wheel0.source, stuck: 1", "signal: Wheel1.source, stuck: 0"}, 1},
	{"valve stuck", []string{"signal: BoxPwm0.duty0, hold: true"}, 1},
	{"pump dead", []string{"signal: BoxPwm2.duty8, stuck: 0"}, 1},
}

// unitFiles returns plant, bench and scenario of the unit, the instants at which the faults begin and the length, s.
func unitFiles() (files map[string]string, begins []float64, length float64) {
	var codes, lamps, links, faults, expect strings.Builder
	length = 1
	for i, f := range unitFaults {
		fmt.Fprintf(&codes, "  code_%d: {unit: \"1\", min: 0, max: 1}\n", i)
		fmt.Fprintf(&lamps, "  lamp_%d: {type: gain, u: code_%d, k: 1}\n", i, i)
		fmt.Fprintf(&links, ", BoxDigital.d%d -> code_%d", 8+i, i)
		for j, on := range f.on {
			name := f.name
			if j > 0 {
				name += " too"
			}
			fmt.Fprintf(&faults, "  - {name: %s, %s, at: %g s, for: %g s}\n", name, on, length, f.last)
		}
		fmt.Fprintf(&expect, "  - {name: the unit finds the fault %s, answer: code_%d > 0.5, after: {fault: %s}, within: %g s}\n", f.name, i, f.name, f.last+0.5)
		begins = append(begins, length)
		length += f.last + 0.2
	}
	length += 0.6
	return map[string]string{
		"axle.yaml":     strings.NewReplacer("CODES\n", codes.String(), "LAMPS\n", lamps.String()).Replace(unitPlant),
		"wire.yaml":     strings.Replace(unitBench, ", LINKS", links.String(), 1),
		"scenario.yaml": fmt.Sprintf("scenario: faults by wire\nfor: %g s\nfaults:\n%sexpect:\n%s", length, faults.String(), expect.String()),
	}, begins, length
}

func TestUnitByWireFindsEachFault(t *testing.T) {
	files, begins, length := unitFiles()
	r := runWithBox(t, "", fmt.Sprintf("%gs", length), files, "unit")
	for i, f := range unitFaults {
		first := slices.Index(r.rows[fmt.Sprintf("code_%d", i)], 1)
		if at := float64(first+1) * 0.005; first < 0 || at < begins[i] {
			t.Errorf("%s: the unit has the code at %.3f s, the fault begins at %.3f s", f.name, at, begins[i])
		}
	}
}

// boxRun is a finished run with a box.
type boxRun struct {
	report report.Report
	edges  map[string][]float64
	counts map[string]int
	rows   map[string][]float64 // ports by tick, SI
}

// wheelFiles are the files of the bench of one wheel and one valve.
var wheelFiles = map[string]string{"wheel.yaml": wirePlant, "wire.yaml": wireBench}

// runWithBox runs a bench, wire.yaml of files, with a box for a time, and replays its record. bus is the name of the
// bus; "": over UDP.
func runWithBox(t *testing.T, bus, length string, files map[string]string, words ...string) (r boxRun) {
	t.Helper()
	lockstep := lab.Command(t)
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	box := exec.Command(buildBox(t), words...)
	lines, err := box.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := box.Start(); err != nil {
		t.Fatal(err)
	}
	defer box.Process.Kill()
	from := bufio.NewReader(lines)
	if bus == "" {
		port, err := from.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		bus = "udp:127.0.0.1:" + strings.TrimSpace(strings.TrimPrefix(port, "port "))
	}
	var text strings.Builder
	read := make(chan struct{})
	go func() {
		from.WriteTo(&text)
		close(read)
	}()

	file := func(name string) string { return filepath.Join(dir, name) }
	args := []string{"run", file("wire.yaml"), "-bus", bus, "-for", length, "-besteffort", "-record", file("r.rec"), "-report", file("r.json")}
	if files["scenario.yaml"] != "" {
		args = append(args, "-scenario", file("scenario.yaml"))
	}
	run := exec.Command(lockstep, args...)
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	time.Sleep(200 * time.Millisecond) // the box reads the last images
	box.Process.Signal(unix.SIGTERM)
	<-read
	if err := box.Wait(); err != nil {
		t.Error(err)
	}
	data, err := os.ReadFile(file("r.json"))
	if err == nil {
		err = json.Unmarshal(data, &r.report)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.edges, r.counts = readEdges(t, text.String()), map[string]int{}
	words = strings.Fields(text.String()[strings.LastIndex(text.String(), "images "):])
	for i := 0; i+1 < len(words); i += 2 {
		r.counts[words[i]], _ = strconv.Atoi(words[i+1])
	}

	out, err := exec.Command(lockstep, "replay", file("r.rec"), "-si", "-out", file("r.csv")).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "identical: ") {
		t.Errorf("the replay differs: %v\n%s", err, out)
	}
	csv, err := os.ReadFile(file("r.csv"))
	if err != nil {
		t.Fatal(err)
	}
	r.rows = map[string][]float64{}
	var head []string
	for line := range strings.Lines(string(csv)) {
		cells := strings.Split(strings.TrimSpace(line), ",")
		for i, cell := range cells {
			if head != nil {
				v, err := strconv.ParseFloat(cell, 64)
				if err != nil {
					t.Fatal(err)
				}
				r.rows[head[i]] = append(r.rows[head[i]], v)
			}
		}
		if head == nil {
			for _, cell := range cells {
				name, _, _ := strings.Cut(cell, "[")
				head = append(head, name)
			}
		}
	}
	return r
}

// checkWheel compares the edges of the box with the closed form, up to an instant, s.
func (r *boxRun) checkWheel(t *testing.T, until float64) {
	t.Helper()
	turn := 2 * math.Pi
	var got []float64
	for _, at := range r.edges["0"] {
		if at += 0.005; at < until { // the first image is that of the first tick
			got = append(got, at)
		}
	}
	checkEdges(t, "wheel", got, crossings(accelerated(40, 10), turn/48, 0.005, until), 3e-9)
}

// checkPressure compares the pressure with the closed form of a turbulent flow through a valve with the duty that the
// plant received: the root of the pressure difference falls at a constant rate.
func (r *boxRun) checkPressure(t *testing.T) {
	t.Helper()
	rate := 7e6 / 1e-6 * 0.7 * 0.02e-6 * math.Sqrt(2.0/1050) / 2 // of the root per s, of an open valve
	root := math.Sqrt(100e5)
	for i, p := range r.rows["p"] {
		root -= rate * (1 - r.rows["inlet"][i]) * 0.005
		if want := 100e5 - root*root; !(math.Abs(p-want) <= 1e-6*100e5) {
			t.Fatalf("tick %d: pressure %g Pa, want %g Pa", i+1, p, want)
		}
		if c := r.rows["current"][i]; c != 0 && c != 1.5*0.25 && c != 1.5 {
			t.Fatalf("tick %d: current %g A", i+1, c)
		}
	}
	if p := r.rows["p"]; !(p[len(p)-1] > 1e5) {
		t.Errorf("the pressure has not risen: %g Pa", p[len(p)-1])
	}
}

func TestBoxOverUDPClosesTheLoop(t *testing.T) {
	r := runWithBox(t, "", "2s", wheelFiles, "udp")
	r.checkWheel(t, 1.9)
	r.checkPressure(t)
	w := r.report.Wire
	if w == nil {
		t.Fatal("the report has no counts of images")
	}
	inlet := r.rows["inlet"]
	if v := inlet[len(inlet)-1]; v != 0.5 {
		t.Errorf("the box has been silent for a long time, and the inlet is at %g: want its substitute", v)
	}
	if slices.Index(inlet, 0.25) < 0 || slices.Index(inlet, 1) < 0 || slices.Index(r.rows["button"], 1) < 0 {
		t.Error("values of the box have not reached the plant")
	}
	c := r.counts
	if missed := r.report.Missed; missed > 60 {
		t.Logf("%d ticks were missed on a busy host: the images are not compared one by one", missed)
		return
	}
	if c["images"] < 300 || int(w.Sent) != c["images"] {
		t.Fatalf("the box has got %d images of %d", c["images"], w.Sent)
	}
	want := [...]int{c["sent"] - c["swapped"], c["lost"], c["swapped"], c["twice"], c["foreign"]}
	if got := [...]int{int(w.Received), int(w.Lost), int(w.Reordered), int(w.Duplicate), int(w.Foreign)}; got != want {
		t.Errorf("received, lost, out of order, twice and foreign: %v, want %v", got, want)
	}
	if int(w.Delayed) < c["delayed"] || c["delayed"] == 0 {
		t.Errorf("%d images are delayed, want at least %d", w.Delayed, c["delayed"])
	}
}

func TestDriverInSharedMemoryClosesTheLoop(t *testing.T) {
	name := fmt.Sprintf("lockstep-test-%d", os.Getpid())
	path := "/dev/shm/" + name
	if err := os.WriteFile(path, make([]byte, 4096), 0o600); err != nil {
		lab.Skip(t, err.Error())
	}
	defer os.Remove(path)
	r := runWithBox(t, "shm:"+name, "1s", wheelFiles, "shm", path)
	r.checkWheel(t, 0.9)
	r.checkPressure(t)
	if w := r.report.Wire; w == nil || w.Received == 0 || w.Foreign+w.Reordered+w.Duplicate > 0 || slices.Index(r.rows["inlet"], 0.25) < 0 {
		t.Errorf("%+v", w)
	}
}
