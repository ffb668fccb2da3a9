package bench

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"

	"lockstep/io/record"
	"lockstep/io/yamlfile"
)

// Sources are the files besides its own that a bench is made from.
func (b *Bench) Sources() (list []record.File, err error) {
	add := func(role string, name yamlfile.Scalar) {
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
	files, err := h.Bench.Sources()
	if err != nil {
		return nil, err
	}
	files = append([]record.File{{Role: "bench", Name: h.Bench.File, Text: h.Bench.text}}, files...)
	var list []Hash
	for _, f := range files {
		sum := sha256.Sum256(f.Text)
		list = append(list, Hash{f.Role, f.Name, hex.EncodeToString(sum[:])})
	}
	list = append(list, Hash{"tables", h.Tables.Name, DigestOfData(h.Tables)})
	if h.Mark != "" {
		sum := sha256.Sum256([]byte(h.Mark))
		list = append(list, Hash{"target", h.Mark, hex.EncodeToString(sum[:])})
	}
	return list, nil
}

// DigestOfData is the SHA-256 of plain data, hexadecimal: equal data, equal digest, in every
// process. What is no exported field does not count.
func DigestOfData(data any) string {
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

// DigestOfBytes is the SHA-256 of some texts and their lengths, hexadecimal.
func DigestOfBytes(data ...[]byte) string {
	h := sha256.New()
	for _, d := range data {
		fmt.Fprintf(h, "%d ", len(d))
		h.Write(d)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Digest is that of a bench and of every file that it names.
func (b *Bench) Digest() string {
	list := [][]byte{b.text}
	var names []string
	for name := range b.Files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		list = append(list, []byte(name), b.Files[name].Data)
	}
	return DigestOfBytes(list...)
}
