// Package certify owns the certificate of a bench on a host: it measures the bench, writes the
// certificate as HTML and JSON, and compares two certificates. ../CERTIFICATE.md describes the
// content of a certificate and the comparison.
//
// The package does not judge a host (package doctor) and does not run a bench: measure.go calls the
// supervisor for that.
//
// Reading order: certificate.go (Certificate, the reasons against its figures), measure.go
// (Measurement.Measure), files.go (both files, the summary for a terminal), html.go (the page),
// compare.go and figures.go (the comparison).
package certify

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"lockstep/deploy/doctor"
	"lockstep/deploy/latency"
	"lockstep/rt/bench"
	"lockstep/rt/check"
	"lockstep/rt/report"
	"lockstep/sched"
	"lockstep/sched/hostinfo"
)

// Certificate is the result of a measurement of a bench on a host. Its JSON keys do not change.
type Certificate struct {
	Format  int     `json:"lockstep_certificate"` // format of these keys: 1
	SHA256  string  `json:"sha256"`               // SHA-256 of this JSON with this value empty
	Made    string  `json:"made"`                 // time of completion, RFC 3339, UTC
	Again   string  `json:"again"`                // command that measures again and compares
	Request Request `json:"asked"`

	Representative bool     `json:"representative"` // true if Reasons is empty
	Reasons        []string `json:"reasons"`        // reasons why the figures are not those of a tuned real-time host
	CutShort       string   `json:"cut_short"`      // why the run is shorter than requested; "" if it is not

	Run       *report.Report    `json:"run"`
	Late      *Distribution     `json:"wake_up"`    // wake-up latency of every grid point; nil without a tick
	Tick      *Distribution     `json:"tick"`       // time from the wake-up to the end of the last send; nil without a tick
	Response  *Distribution     `json:"bus_to_bus"` // time from a frame to its answer; nil if no frame had a timestamp
	Reference *Reference        `json:"beside"`     // nil if cyclictest was not measured
	Worst     *check.WorstCase  `json:"worst_case"`
	Buses     []Bus             `json:"buses"`
	Deadline  bool              `json:"deadline"` // true if the loop is SCHED_DEADLINE, false for SCHED_FIFO
	Box       hostinfo.Machine  `json:"box"`
	Doctor    *doctor.Diagnosis `json:"doctor"`
	Versions  Versions          `json:"versions"`

	text []byte // JSON from which Read made the certificate; nil if it was not read
}

// Request holds the bench and the flags of a measurement.
type Request struct {
	Bench      string   `json:"bench"` // absolute path, or name of an embedded bench
	ForNs      int64    `json:"for_ns"`
	Bus        []string `json:"bus,omitempty"`
	UnitBus    string   `json:"unitbus,omitempty"`
	Load       bool     `json:"load"`
	BestEffort bool     `json:"besteffort"`
	Kernel     string   `json:"kernel"` // table, generated, or the path of an executable
}

// Reference compares the loop with cyclictest on the same CPU, in turns of equal length.
type Reference struct {
	Rounds     int              `json:"rounds"`     // turns of cyclictest that succeeded
	Loop       *latency.Figures `json:"loop"`       // loop while cyclictest ran
	Cyclictest *latency.Figures `json:"cyclictest"` // nil if it failed
	Alone      *latency.Figures `json:"alone"`      // loop while cyclictest did not run; nil without such a turn
	Priority   int              `json:"priority"`   // SCHED_FIFO priority of cyclictest, and of a loop without Deadline
	PhaseNs    int64            `json:"phase_ns"`   // delay of cyclictest after the loop's grid points
}

// Bus is a bus of the bench.
type Bus struct {
	Name      string `json:"name"`
	Interface string `json:"interface"`
}

// Versions identifies the executable and the files of a run.
type Versions struct {
	Lockstep string       `json:"lockstep"` // version, commit if known, compiler
	Modified bool         `json:"modified"` // true if the sources differed from the commit
	Go       string       `json:"go"`
	Arch     string       `json:"arch"`   // architecture with its level: amd64 v1
	Binary   string       `json:"binary"` // SHA-256 of the executable
	Files    []bench.Hash `json:"files"`
}

// Distribution is a histogram.
type Distribution struct {
	Samples uint64         `json:"samples"`
	MaxNs   int64          `json:"max_ns"`
	Micros  map[int]uint64 `json:"histogram_us"`     // counts below 10 ms by class of 1 µs; the key is its lower end
	Beyond  []Beyond       `json:"beyond,omitempty"` // classes from 10 ms on, the shortest first
}

// Beyond is a class of a histogram from 10 ms on.
type Beyond struct {
	UpperNs int64  `json:"upper_ns"` // upper end of the class, inclusive
	N       uint64 `json:"n"`
}

// distribution converts a histogram of the loop; nil if it is empty.
func distribution(h *sched.Histogram) *Distribution {
	if h.N() == 0 {
		return nil
	}
	d := &Distribution{Samples: h.N(), MaxNs: h.Max(), Micros: map[int]uint64{}}
	left := d.Samples
	for us := range sched.Micros {
		if n := h.Micro(us); n > 0 {
			d.Micros[us] = n
			left -= n
		}
	}

	// The class that contains 10 ms also counts shorter times: it gets the remaining samples.
	classes := h.Classes(64)
	for i := len(classes) - 1; i >= 0 && left > 0; i-- {
		n := min(classes[i].N, left)
		d.Beyond = append([]Beyond{{classes[i].Upper, n}}, d.Beyond...)
		left -= n
	}

	return d
}

// Scheduler returns the scheduling policy of the loop, with its priority for SCHED_FIFO.
func (c *Certificate) Scheduler() string {
	if c.Deadline {
		return "SCHED_DEADLINE"
	}
	return fmt.Sprintf("SCHED_FIFO %d", c.Doctor.Host.Priority)
}

// hashPattern matches the hash in the JSON of a certificate.
var hashPattern = regexp.MustCompile(`"sha256": "([0-9a-f]{64})"`)

// JSON encodes the certificate for programs and sets SHA256.
func (c *Certificate) JSON() ([]byte, error) {
	c.SHA256 = ""
	text, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		return nil, fmt.Errorf("certify: %w", err)
	}
	c.SHA256 = hashOf(text)
	return insertHash(text), nil
}

// insertHash fills the empty hash of a JSON text.
func insertHash(text []byte) []byte {
	return bytes.Replace(text, []byte(`"sha256": ""`), fmt.Appendf(nil, `"sha256": "%s"`, hashOf(text)), 1)
}

func hashOf(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }

// Read parses the JSON of a certificate; name is its file, for errors. A text that was changed after
// it was written is an error.
func Read(name string, text []byte) (*Certificate, error) {
	fail := func(format string, args ...any) (*Certificate, error) {
		return nil, fmt.Errorf("certify: "+name+": "+format, args...)
	}
	const other = "not the JSON of a certificate"
	var head struct {
		Format any `json:"lockstep_certificate"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return fail(other+": %w", err)
	}
	switch head.Format {
	case float64(1):
	case nil:
		return fail(other + ": no key lockstep_certificate")
	default:
		return fail("unknown certificate format %v; this version reads format 1", head.Format)
	}

	at := hashPattern.FindSubmatchIndex(text)
	if at == nil {
		return fail(other + ": no key sha256")
	}
	empty := slices.Concat(text[:at[2]], text[at[3]:])
	if want, got := string(text[at[2]:at[3]]), hashOf(empty); got != want {
		return fail("changed after it was written: sha256 is %.12s..., the content has %.12s...", want, got)
	}

	c := &Certificate{text: text}
	if err := json.Unmarshal(text, c); err != nil {
		return fail("%w", err)
	}
	if c.Run == nil || c.Doctor == nil {
		return fail(other + ": no key run or doctor")
	}
	return c, nil
}

// The minimum length and samples of a representative certificate. Some causes of rare delays come
// every few minutes. Ten samples exceed the 99.9th percentile of the loop, and the 99th of
// cyclictest.
const (
	minLength            = 10 * time.Minute
	minTicks             = 10_000
	minCyclictestSamples = 1_000
)

// objections lists why latencies measured on the loop's CPU are not those of a tuned real-time
// host: the objections of package latency, a container, and each MUST check that is not OK.
func objections(h *hostinfo.Host, d doctor.Diagnosis) []string {
	basic, list := latency.Objections(h), []string{}
	for _, o := range basic {
		list = append(list, o.Text)
	}
	if in := d.Host.Container; in != "" {
		list = append(list, "the process is in a container ("+in+"): other processes of the host cannot be seen")
	}
	for _, c := range d.Checks {
		if c.Level == doctor.Must && c.Verdict != doctor.OK && !slices.ContainsFunc(basic, func(o latency.Objection) bool { return o.Check == c.Name }) {
			list = append(list, fmt.Sprintf("%s: %s; wanted: %s", c.Name, c.Found, c.Wanted))
		}
	}

	return list
}

// setReasons sets Reasons and Representative; host lists the objections to the host.
func (c *Certificate) setReasons(host []string) {
	c.Reasons = []string{}
	reason := func(when bool, format string, args ...any) {
		if text := fmt.Sprintf(format, args...); when && !slices.Contains(c.Reasons, text) {
			c.Reasons = append(c.Reasons, text)
		}
	}

	for _, text := range host {
		reason(true, "%s", text)
	}
	for _, why := range c.Run.BestEffortWhy {
		reason(!slices.Contains(c.Reasons, why), "best effort: %s", why)
	}

	ran := seconds(c.Run.SimTime)
	reason(c.CutShort != "", "cut short: %s after %v of %v", c.CutShort, ran, time.Duration(c.Request.ForNs))
	reason(ran < minLength, "too short: %v; a delay that comes every few minutes may be missing, run at least %v", ran, minLength)
	reason(c.Run.Ticks < minTicks, "too few ticks: %d; p99.9 and max need at least %d", c.Run.Ticks, minTicks)
	reason(!c.Request.Load, "no load: the other CPUs were idle")
	reason(c.Run.RxFrames == 0, "no frame was received: connect the control unit")
	for _, b := range c.Buses {
		text := c.virtualBus(b)
		reason(text != "", "%s", text)
	}

	if c.Reference == nil || c.Reference.Cyclictest == nil {
		reason(true, "no cyclictest to compare with")
	} else {
		n := c.Reference.Cyclictest.Samples
		const text = "too few wake-ups of cyclictest: %d; the ratio of p99 needs at least %d"
		reason(n < minCyclictestSamples, text, n, minCyclictestSamples)
	}

	c.Representative = len(c.Reasons) == 0
}

// virtualBus explains why the times of frames on a bus are not those of real CAN; "" if they are.
func (c *Certificate) virtualBus(b Bus) string {
	switch {
	case b.Interface == "pair":
		return fmt.Sprintf("bus %s is a pair of sockets in this host: its times include no CAN card, driver or wire", b.Name)
	case strings.HasPrefix(b.Interface, "file:"):
		return fmt.Sprintf("bus %s replays a log: its times include no CAN card, driver or wire", b.Name)
	}

	for _, card := range c.Box.CAN {
		if card.Interface == b.Interface && card.Driver == "" {
			return fmt.Sprintf("bus %s on %s is a virtual interface: its times include no CAN card or wire", b.Name, b.Interface)
		}
	}

	return ""
}

// seconds converts a time in s to a Duration, rounded to ms.
func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond)
}
