package bench

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"

	"golang.org/x/sys/unix"

	"lockstep/io/dbc"
	"lockstep/io/record"
	"lockstep/io/yamlfile"
	"lockstep/model/kernel"
	"lockstep/rt"
	"lockstep/rt/target"
	"lockstep/sched"
)

// NamedFault is a fault with its name and its command.
type NamedFault struct {
	Name string // name of the fault
	Spec string // words of the command
}

// String returns the fault as in a record.
func (f NamedFault) String() string { return f.Name + ": " + f.Spec }

// ForSupervisors is the further data that a supervisor needs to take over a run.
type ForSupervisors struct {
	Bench       *Bench
	Missing     []sched.Missing // rights that the host refuses
	Named       []NamedFault    // faults of Loop.Faults, by slot
	ChangeTexts []string        // parameters of each of Handover.Changes
	StateTexts  []string        // command of each of Loop.Faults.States: "reset warm"
	Snapshots   []string        // names of the snapshots of Loop.Faults.States, by slot

	Begin        *Begin   // of a record that does not begin with its run; nil: it does
	Reservations []string // reservations of the run; the target inherits their descriptors after its buses
	Page         LivePage // of the run, for the supervisor after this one; a record does not have it
}

// Begin is where a record begins in its run, and the state of the loop there.
type Begin struct {
	Tick      int64    // first tick of the record
	Snapshots []string // names of the stored states of the plant, by slot; "": none
	State     []byte   // copy of the state before the tick: see package checkpoint
	Layout    string   // digest of its layout
}

// LivePage is how the live page of a run is reached.
type LivePage struct {
	Port  string // as asked for: a TCP port of 127.0.0.1, "0" for any free one; "": there is no page
	Token string // secret in the address of the page
}

// Save writes the hand-over to a sealed file in memory, which the target process inherits;
// the caller closes it. The values follow one another, and each process reads only those that
// it needs: a generated target skips the tables, and no target reads ForSupervisors.
func (h *Handover) Save() (*os.File, error) {
	f, err := rt.SealedFile("lockstep-handover", unix.F_SEAL_WRITE, func(f *os.File) error { return h.write(f) })
	if err != nil {
		return nil, fmt.Errorf("bench: hand-over: %w", err)
	}
	return f, nil
}

// write writes the values of the hand-over.
func (h *Handover) write(to io.Writer) error {
	values := gob.NewEncoder(to)
	return errors.Join(values.Encode(&h.Handover), values.Encode(h.Tables), values.Encode(h.Changes), values.Encode(&h.ForSupervisors))
}

// Reload returns the hand-over as LoadHandover reads it in another process. The memory of the values then has the
// same layout as in that process: see package checkpoint.
func (h *Handover) Reload() (*Handover, error) {
	var data bytes.Buffer
	if err := h.write(&data); err != nil {
		return nil, fmt.Errorf("bench: hand-over: %w", err)
	}
	return LoadHandover(bytes.NewReader(data.Bytes()))
}

// ForRecord returns the hand-over as Save writes it, without the content of the files, which a
// record has in its header.
func (h *Handover) ForRecord() ([]byte, error) {
	var to bytes.Buffer
	b, short := *h.Bench, *h
	b.Files, short.Bench, short.Page = nil, &b, LivePage{}
	if err := short.write(&to); err != nil {
		return nil, fmt.Errorf("bench: hand-over: %w", err)
	}
	return to.Bytes(), nil
}

// FromRecord returns the hand-over of a run from its record. version is that of this program.
//
// It refuses tables that differ from those of the run, which another version of lockstep wrote with
// other fields, and files that do not have the hash of the header.
func FromRecord(r *record.Reader, version string) (*Handover, error) {
	data, err := r.Handover()
	if err != nil {
		return nil, err
	}
	h, err := LoadHandover(bytes.NewReader(data))
	if err != nil || h.Bench == nil || DigestOfData(h.Tables) != r.Header.Hashes["tables"] {
		if r.Header.Version == version {
			return nil, fmt.Errorf("made by this version, %s, but its prepared data cannot be read: the file was changed", version)
		}
		return nil, fmt.Errorf("made by %s, whose prepared data this version cannot read: replay it with that version", r.Header.Version)
	}
	h.Bench.Files = map[string]FileContent{}
	for _, f := range r.Header.Files {
		if fmt.Sprintf("%x", sha256.Sum256(f.Text)) != f.SHA256 {
			return nil, fmt.Errorf("the text of %s %s does not have its hash in the header: the file was changed", f.Role, f.Name)
		}
		if f.Role == dataRole {
			h.Bench.Files[h.Bench.keyOfPlant(f.Name)] = FileContent{Shown: f.Name, Data: f.Text, Named: f.Name}
			continue
		}
		h.Bench.Files[f.Name] = FileContent{Shown: f.Name, Data: f.Text}
	}
	return h, nil
}

// LoadHandover reads a hand-over written by Save.
func LoadHandover(f io.ReadSeeker) (*Handover, error) {
	first, err := target.Open(f)
	if err != nil {
		return nil, err
	}
	h := &Handover{Handover: *first, Tables: &kernel.Tables{}}
	for _, part := range []any{h.Tables, &h.Changes, &h.ForSupervisors} {
		if err := first.Next(part); err != nil {
			return nil, err
		}
	}

	return h, nil
}

// Chooser finds the target executable with the generated kernel for a hand-over: its absolute
// path, and its mark (see package target).
type Chooser func(h *Handover) (file, mark string, err error)

// dataRole is the role of a file that the plant file names, such as a drive cycle.
const dataRole = "data"

// Sources returns the plant, the files that it names, and the databases of a bench.
func (b *Bench) Sources() (list []record.File, err error) {
	add := func(role, kind string, name yamlfile.Scalar) {
		if _, data, e := b.Read(name, kind); e != nil {
			err = errors.Join(err, e)
		} else {
			list = append(list, record.File{Role: role, Name: name.Text, Text: data})
		}
	}

	add("plant", "plant", b.Plant)
	for _, key := range slices.Sorted(maps.Keys(b.Files)) {
		if f := b.Files[key]; f.Named != "" {
			list = append(list, record.File{Role: dataRole, Name: f.Named, Text: f.Data})
		}
	}
	for _, bus := range b.Buses {
		add("dbc", "database", bus.Database)
	}
	return list, err
}

// AddLayouts reads the databases in the header of a record, with the units of the bench file, for the
// export of the signals.
func AddLayouts(h *record.Header) error {
	for i := range h.Buses {
		bus := &h.Buses[i]
		j := slices.IndexFunc(h.Files, func(f record.File) bool { return f.Role == "dbc" && f.Name == bus.Database })
		if j < 0 {
			continue // a record of an older version
		}
		db, _, err := dbc.ParseLenient(bus.Database, h.Files[j].Text)
		if err != nil {
			return err
		}
		replaceUnits(db, bus.Units)
		bus.Layout = db
	}
	return nil
}

// Hash is the SHA-256, hexadecimal, of a source of a run.
type Hash struct {
	// bench, plant, data or dbc: a file; tables: the prepared tables of the kernel; target: the executable's mark.
	Role   string `json:"role"`
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Hashes returns the hashes of all sources of a run except the binary.
func (h *Handover) Hashes() ([]Hash, error) {
	files, err := h.Bench.Sources()
	if err != nil {
		return nil, err
	}
	files = append([]record.File{{Role: "bench", Name: h.Bench.File, Text: h.Bench.text}}, files...)
	var list []Hash
	for _, f := range files {
		list = append(list, Hash{f.Role, f.Name, fmt.Sprintf("%x", sha256.Sum256(f.Text))})
	}

	list = append(list, Hash{"tables", h.Tables.Name, DigestOfData(h.Tables)})
	if h.Mark != "" {
		list = append(list, Hash{"target", h.Mark, fmt.Sprintf("%x", sha256.Sum256([]byte(h.Mark)))})
	}

	return list, nil
}

// DigestOfData returns the SHA-256 of plain data, hexadecimal: equal data have an equal digest in
// every process. It ignores unexported fields.
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
			panic("bench: digest of a " + v.Kind().String()) // a test computes the digest of every plant
		}
	}

	walk(reflect.ValueOf(data))
	return fmt.Sprintf("%x", h.Sum(nil))
}

// DigestOfBytes returns the SHA-256 of texts and their lengths, hexadecimal.
func DigestOfBytes(data ...[]byte) string {
	h := sha256.New()
	for _, d := range data {
		fmt.Fprintf(h, "%d ", len(d))
		h.Write(d)
	}

	return fmt.Sprintf("%x", h.Sum(nil))
}

// Digest returns the digest of a bench file and of every file that it names.
func (b *Bench) Digest() string {
	list := [][]byte{b.text}
	if b.Program != nil {
		list = append(list, []byte(b.ProgramDigest()))
	}
	for _, name := range slices.Sorted(maps.Keys(b.Files)) {
		list = append(list, []byte(name), b.Files[name].Data)
	}
	return DigestOfBytes(list...)
}
