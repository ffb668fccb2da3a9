package record

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"lockstep/io/can"
)

// Header is what a record says before the first tick: enough to run it again
// without any other file.
type Header struct {
	Run  string // names the run; equal in all its files. Create makes one if it is empty
	Part int    // number of the file in the run, from 1; set by the writer

	Version    string // of lockstep and of its build
	Host       string // name, kernel, processor
	GOARCH     string // replay is bit for bit on the same architecture
	BestEffort bool   // the run had no real-time rights

	Period int64 // of the grid, ns; > 0
	Start  int64 // grid point 0 on CLOCK_REALTIME, ns since 1970 UTC
	Mono   int64 // grid point 0 on CLOCK_MONOTONIC, ns

	Inputs  []Signal // of the plant, in the order of Tick.U
	Outputs []Signal // of the plant, in the order of Tick.Y
	Phases  []string // in the order of Tick.Phases
	Buses   []Bus    // in the order of Frame.Bus

	Files  []File            // bench, plant, databases, scenario: their whole text
	Hashes map[string]string // of what was made of them, such as the matrices
	Notes  map[string]string // anything else
}

// Signal is a column of the ticks.
type Signal struct{ Name, Unit string }

// Bus is a bus of the bench.
type Bus struct {
	Name      string    // in the bench file
	Interface string    // such as can0
	Messages  []Message // of the signal map
}

// Message names an identifier of a bus.
type Message struct {
	Name string
	ID   uint32 // as in can.Frame
	Sent bool   // by the target
}

// File is a file the run was made from.
type File struct {
	Role   string // bench, plant, dbc, scenario
	Name   string // as given
	Text   []byte
	SHA256 string // of Text, hexadecimal; set by the writer
}

// At is grid point k on CLOCK_REALTIME, ns since 1970 UTC.
func (h *Header) At(k int64) int64 { return h.Start + k*h.Period }

// time is when a frame was on the bus: what the kernel said or else the time of the
// tick, ns since 1970 UTC.
func (h *Header) time(at, tick int64) int64 {
	if at != 0 {
		return at
	}
	return h.At(tick)
}

// bus is the name of bus i for logs: its interface, if that can be one and is no other
// bus's, too.
func (h *Header) bus(i uint8) string {
	named := func(name string) (n int) {
		for _, b := range h.Buses {
			if b.Interface == name {
				n++
			}
		}
		return n
	}
	if int(i) < len(h.Buses) {
		if name := h.Buses[i].Interface; can.LegalName(name) && named(name) == 1 {
			return name
		}
	}
	return fmt.Sprintf("can%d", i)
}

// maxValues bounds the columns of a tick, so that a tick always fits into a chunk.
const maxValues = 50_000

func (h *Header) validate() error {
	switch {
	case h.Period <= 0:
		return fmt.Errorf("record: header: period %d ns is not positive", h.Period)
	case len(h.Inputs)+len(h.Outputs)+len(h.Phases) > maxValues:
		return fmt.Errorf("record: header: %d values per tick, at most %d are possible",
			len(h.Inputs)+len(h.Outputs)+len(h.Phases), maxValues)
	}
	return nil
}

// encode is the payload of the header's chunk.
func (h *Header) encode() ([]byte, error) {
	for i := range h.Files {
		sum := sha256.Sum256(h.Files[i].Text)
		h.Files[i].SHA256 = hex.EncodeToString(sum[:])
	}
	text, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("record: header: %w", err)
	}
	if len(text) > maxHeader {
		return nil, fmt.Errorf("record: header: %d bytes, at most %d are possible", len(text), maxHeader)
	}
	return text, nil
}

func decodeHeader(text []byte) (h Header, err error) {
	if err := json.Unmarshal(text, &h); err != nil {
		return h, fmt.Errorf("header: %w", err)
	}
	if h.validate() != nil {
		return h, errors.New("header: values out of range")
	}
	return h, nil
}
