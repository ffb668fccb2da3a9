// Package certify owns the certificate of a bench on a host: it measures one, writes it as a page
// for people and as JSON, and compares two.
//
// It does not judge a host (package doctor) and does not run a bench: the supervisor does, which
// supervisor.go alone calls.
//
// Reading order: certificate.go (Certificate), measure.go (Order.Measure), supervisor.go (the
// run), reasons.go (what speaks against the figures), files.go (both files appear whole), html.go
// and svg.go (the page), compare.go and figures.go (two certificates), text.go (what a terminal
// shows).
package certify

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"lockstep/deploy/doctor"
	"lockstep/deploy/hostinfo"
	"lockstep/deploy/latency"
	"lockstep/rt/bench"
	"lockstep/rt/check"
	"lockstep/rt/report"
	"lockstep/sched"
)

// Certificate is what was measured, where, and of what. Its JSON keys do not change.
type Certificate struct {
	Format int    `json:"lockstep_certificate"` // of these keys: 1
	SHA256 string `json:"sha256"`               // of this JSON with this text empty
	Made   string `json:"made"`                 // when it was complete, RFC 3339, UTC
	Again  string `json:"again"`                // the command that measures it again and compares
	Asked  Asked  `json:"asked"`

	Representative bool     `json:"representative"` // of a tuned real-time host, nothing speaks against it
	Reasons        []string `json:"reasons"`        // what does
	CutShort       string   `json:"cut_short"`      // why it is shorter than was asked for; "": it is not

	Run      *report.Report    `json:"run"`
	Late     *Distribution     `json:"wake_up"`    // of every grid point, from its due time; nil: no tick came
	Tick     *Distribution     `json:"tick"`       // from the wake-up to the return of the last send
	Response *Distribution     `json:"bus_to_bus"` // nil: no frame that came in had a time
	Beside   *Beside           `json:"beside"`     // nil: cyclictest was not measured
	Worst    *check.WorstCase  `json:"worst_case"`
	Buses    []Bus             `json:"buses"`
	Deadline bool              `json:"deadline"` // the loop is SCHED_DEADLINE, not SCHED_FIFO
	Box      hostinfo.Box      `json:"box"`
	Doctor   *doctor.Diagnosis `json:"doctor"`
	Versions Versions          `json:"versions"`

	text []byte // that it was read from; nil: it was not
}

// Asked is what the measurement was asked for.
type Asked struct {
	Bench      string   `json:"bench"` // an absolute path, or an embedded one
	ForNs      int64    `json:"for_ns"`
	Bus        []string `json:"bus,omitempty"`
	UnitBus    string   `json:"unitbus,omitempty"`
	Load       bool     `json:"load"`
	BestEffort bool     `json:"besteffort"`
	Kernel     string   `json:"kernel"` // table, generated, or the path of an executable
}

// Beside is the loop beside cyclictest, in turns of the same time on the same CPU.
type Beside struct {
	Rounds     int              `json:"rounds"`
	Loop       *latency.Figures `json:"loop"`
	Cyclictest *latency.Figures `json:"cyclictest"` // nil: it failed
	Alone      *latency.Figures `json:"alone"`      // the loop while no cyclictest ran; nil: there was no such time
	Priority   int              `json:"priority"`   // SCHED_FIFO, of cyclictest, and of the loop but for a deadline
	PhaseNs    int64            `json:"phase_ns"`   // of cyclictest after the loop's grid points
}

// Bus is a bus of the bench.
type Bus struct {
	Name      string `json:"name"`
	Interface string `json:"interface"`
}

// Versions are what ran.
type Versions struct {
	Lockstep string       `json:"lockstep"` // version, commit where it is known, compiler
	Modified bool         `json:"modified"` // the sources were not those of the revision
	Go       string       `json:"go"`
	Arch     string       `json:"arch"`   // with its level: amd64 v1
	Binary   string       `json:"binary"` // SHA-256 of the executable
	Files    []bench.Hash `json:"files"`
}

// Distribution is a histogram.
type Distribution struct {
	Samples uint64         `json:"samples"`
	MaxNs   int64          `json:"max_ns"`
	Micros  map[int]uint64 `json:"histogram_us"`     // below 10 ms: class of 1 µs, by its lower end: how many
	Beyond  []Beyond       `json:"beyond,omitempty"` // from 10 ms on, the shortest first
}

// Beyond is a class of a histogram from 10 ms on.
type Beyond struct {
	UpperNs int64  `json:"upper_ns"` // the longest time that belongs to it
	N       uint64 `json:"n"`
}

// distribution reads a histogram of the loop; nil if it is empty.
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
	// The class in which 10 ms lies has shorter ones, too: it has what the others leave.
	classes := h.Classes(64)
	for i := len(classes) - 1; i >= 0 && left > 0; i-- {
		n := min(classes[i].N, left)
		d.Beyond = append([]Beyond{{classes[i].Upper, n}}, d.Beyond...)
		left -= n
	}
	return d
}

// Scheduler is that of the loop.
func (c *Certificate) Scheduler() string {
	if c.Deadline {
		return "SCHED_DEADLINE"
	}
	return fmt.Sprintf("SCHED_FIFO %d", c.Doctor.Host.Priority)
}

// hashed matches the hash in the text of a certificate.
var hashed = regexp.MustCompile(`"sha256": "([0-9a-f]{64})"`)

// JSON is the certificate for machines; it fills in the hash.
func (c *Certificate) JSON() ([]byte, error) {
	c.SHA256 = ""
	text, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		return nil, fmt.Errorf("certify: %w", err)
	}
	c.SHA256 = hashOf(text)
	return sealed(text), nil
}

// sealed is a text whose hash is empty, with it.
func sealed(text []byte) []byte {
	return bytes.Replace(text, []byte(`"sha256": ""`), fmt.Appendf(nil, `"sha256": "%s"`, hashOf(text)), 1)
}

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Errors of Read, for errors.Is.
var (
	ErrNotCertificate = errors.New("it is not the JSON of a certificate")
	ErrFormat         = errors.New("a certificate of another format")
	ErrAltered        = errors.New("it was changed after it was made")
)

// KeyError is a key of a certificate that is missing or has a value that it cannot have.
type KeyError struct {
	Key  string // in the JSON: "asked.for_ns"
	Text string
}

func (e *KeyError) Error() string { return e.Text }

// Read reads the JSON of a certificate, name is its file's. One that was changed after
// it was made is an error.
func Read(name string, text []byte) (*Certificate, error) {
	fail := func(format string, args ...any) (*Certificate, error) {
		return nil, fmt.Errorf("certify: "+name+": "+format, args...)
	}
	var head struct {
		Format any    `json:"lockstep_certificate"`
		Made   string `json:"made"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return fail("%w: %w", ErrNotCertificate, err)
	}
	switch head.Format {
	case float64(1):
	case nil:
		return fail("%w: it has no lockstep_certificate", ErrNotCertificate)
	default:
		return fail("%w: %v; this version reads 1", ErrFormat, head.Format)
	}
	at := hashed.FindSubmatchIndex(text)
	if at == nil {
		return fail("%w: it has no sha256", ErrNotCertificate)
	}
	empty := slices.Concat(text[:at[2]], text[at[3]:])
	if want, got := string(text[at[2]:at[3]]), hashOf(empty); got != want {
		return fail("%w: its sha256 says %.12s..., its content has %.12s...", ErrAltered, want, got)
	}
	c := &Certificate{text: text}
	if err := json.Unmarshal(text, c); err != nil {
		return fail("%w", err)
	}
	if err := c.whole(); err != nil {
		return fail("%w", err)
	}
	return c, nil
}

// whole says what a certificate lacks of what every one has.
func (c *Certificate) whole() error {
	if _, err := time.Parse(time.RFC3339, c.Made); err != nil {
		return &KeyError{"made", fmt.Sprintf("made: %q is no time", c.Made)}
	}
	switch {
	case c.Run == nil:
		return &KeyError{"run", "it has no run"}
	case c.Doctor == nil:
		return &KeyError{"doctor", "it has no doctor"}
	case c.Asked.ForNs <= 0:
		return &KeyError{"asked.for_ns", fmt.Sprintf("asked.for_ns: %d ns is no time", c.Asked.ForNs)}
	}
	for name, d := range map[string]*Distribution{"wake_up": c.Late, "tick": c.Tick, "bus_to_bus": c.Response} {
		if err := d.whole(); err != nil {
			return &KeyError{name, fmt.Sprintf("%s: %v", name, err)}
		}
	}
	return nil
}

// whole says what is wrong with a histogram that is there.
func (d *Distribution) whole() error {
	if d == nil {
		return nil
	}
	sum := uint64(0)
	for us, n := range d.Micros {
		if us < 0 || us >= sched.Micros || n > d.Samples {
			return fmt.Errorf("histogram_us: %d times %d us", n, us)
		}
		sum += n
	}
	for _, b := range d.Beyond {
		if b.UpperNs < sched.Micros*1000 || b.N > d.Samples {
			return fmt.Errorf("beyond: %d times up to %d ns", b.N, b.UpperNs)
		}
		sum += b.N
	}
	if sum != d.Samples || d.Samples == 0 || d.MaxNs < 0 {
		return fmt.Errorf("%d of %d samples are in its classes", sum, d.Samples)
	}
	return nil
}
