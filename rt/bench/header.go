package bench

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"lockstep/io/record"
)

// header is what the record needs to run again without any other file.
func (c *recorder) header(start, offset int64) (*record.Header, error) {
	b, t := c.h.Bench, c.h.Tables
	h := &record.Header{
		Version: Version(), Host: hostName(), GOARCH: runtime.GOARCH, BestEffort: c.best,
		Period: t.PeriodNs, Start: start + offset, Mono: start,
		Phases: []string{"the tick before", "wake-up", "receive", "step", "send"},
		Hashes: map[string]string{"tables": digest(t)},
		Notes:  map[string]string{"kernel": c.h.Kernel()},
	}
	for _, p := range t.Inputs {
		h.Inputs = append(h.Inputs, record.Signal{Name: p.Name, Unit: p.Unit})
	}
	for _, p := range t.Outputs {
		h.Outputs = append(h.Outputs, record.Signal{Name: p.Name, Unit: p.Unit})
	}
	h.Files = append(h.Files, record.File{Role: "bench", Name: b.File, Text: b.fileText()})
	if s := c.trial; s != nil {
		h.Files = append(h.Files, record.File{Role: "scenario", Name: s.File, Text: s.text})
	}
	for i, bus := range b.Buses {
		rb := record.Bus{Name: bus.Name.Text, Interface: bus.Interface.Text}
		for _, m := range c.h.Maps[i].Rx {
			rb.Messages = append(rb.Messages, record.Message{Name: m.Name, ID: m.ID})
		}
		for _, m := range c.h.Maps[i].Tx {
			rb.Messages = append(rb.Messages, record.Message{Name: m.Name, ID: m.ID, Sent: true})
		}
		h.Buses = append(h.Buses, rb)
	}
	files, err := b.sources()
	if err != nil {
		return nil, err
	}
	h.Files = append(h.Files, files...)
	return h, nil
}

// sources are the files besides its own that a bench is made from.
func (b *Bench) sources() (list []record.File, err error) {
	add := func(role string, name Word) {
		if _, data, e := b.Read(name); e != nil {
			err = errors.Join(err, e)
		} else {
			list = append(list, record.File{Role: role, Name: name.Text, Text: data})
		}
	}
	add("plant", b.Plant)
	for _, bus := range b.Buses {
		add("dbc", bus.Database)
	}
	return list, err
}

// Hash is what something that a run is made from was, by its SHA-256, hexadecimal.
type Hash struct {
	Role   string `json:"role"` // bench, plant, dbc; tables: what the kernel steps with, prepared; target: the executable's mark
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Hashes are those of all that a run is made from besides the binary.
func (h *Handover) Hashes() ([]Hash, error) {
	files, err := h.Bench.sources()
	if err != nil {
		return nil, err
	}
	files = append([]record.File{{Role: "bench", Name: h.Bench.File, Text: h.Bench.text}}, files...)
	var list []Hash
	for _, f := range files {
		sum := sha256.Sum256(f.Text)
		list = append(list, Hash{f.Role, f.Name, hex.EncodeToString(sum[:])})
	}
	list = append(list, Hash{"tables", h.Tables.Name, digest(h.Tables)})
	if h.Mark != "" {
		sum := sha256.Sum256([]byte(h.Mark))
		list = append(list, Hash{"target", h.Mark, hex.EncodeToString(sum[:])})
	}
	return list, nil
}

// digest is the SHA-256 of plain data, hexadecimal: equal data, equal digest, in every
// process. What is no exported field does not count.
func digest(data any) string {
	h := sha256.New()
	put := func(v uint64) {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], v)
		h.Write(b[:])
	}
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if put(uint64(v.Kind())); !v.IsNil() {
				walk(v.Elem())
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					walk(v.Field(i))
				}
			}
		case reflect.Slice, reflect.Array:
			put(uint64(v.Len()))
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.String:
			put(uint64(v.Len()))
			h.Write([]byte(v.String()))
		case reflect.Float64:
			put(math.Float64bits(v.Float()))
		case reflect.Bool:
			put(map[bool]uint64{true: 1}[v.Bool()])
		case reflect.Int, reflect.Int8, reflect.Int64:
			put(uint64(v.Int()))
		case reflect.Uint8, reflect.Uint64:
			put(v.Uint())
		default:
			panic("bench: digest of a " + v.Kind().String()) // a test makes one of every plant
		}
	}
	walk(reflect.ValueOf(data))
	return hex.EncodeToString(h.Sum(nil))
}

// hostName is the name of this host and its kernel.
func hostName() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	text := func(b []byte) string { return strings.TrimRight(string(b), "\x00") }
	return text(u.Nodename[:]) + ", " + text(u.Sysname[:]) + " " + text(u.Release[:]) + " " + text(u.Version[:]) + ", " + text(u.Machine[:])
}
