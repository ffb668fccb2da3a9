package sweep

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"lockstep/io/inputfile"
)

// parquet-go stays at v0.25.1: later versions link protocol buffers and geometry into the command,
// which makes it 8 MB larger.

// head is the metadata of a Parquet file of a sweep, as JSON under the key "lockstep".
type head struct {
	Sweep   string   `json:"sweep"`
	Hash    string   `json:"hash"`
	Shard   int64    `json:"shard"`
	Shards  int64    `json:"shards"` // 1 for a merged table
	Cases   int64    `json:"cases"`  // cases of the sweep
	Rows    int64    `json:"rows"`   // rows of the file
	Columns []Column `json:"columns"`
	File    string   `json:"file"` // content of the sweep file
}

const headKey = "lockstep"

// record is a row of a file: one value per column.
type record []parquet.Value

// group is a group of columns in a given order.
type group struct {
	parquet.Group
	order []string
}

func (g group) Fields() []parquet.Field {
	fields := g.Group.Fields()
	slices.SortFunc(fields, func(a, b parquet.Field) int {
		return slices.Index(g.order, a.Name()) - slices.Index(g.order, b.Name())
	})
	return fields
}

// nodes are the Parquet types of columns, by kind.
var nodes = map[Kind]parquet.Node{
	Number:    parquet.Leaf(parquet.Int64Type),
	Parameter: parquet.Leaf(parquet.DoubleType),
	Result:    parquet.Optional(parquet.Leaf(parquet.DoubleType)),
	Verdict:   parquet.Optional(parquet.Leaf(parquet.BooleanType)),
	Text:      parquet.Optional(parquet.String()),
}

func schema(name string, columns []Column) *parquet.Schema {
	g := group{Group: parquet.Group{}}
	for _, c := range columns {
		g.Group[c.Name] = nodes[c.Kind]
		g.order = append(g.order, c.Name)
	}

	return parquet.NewSchema(name, g)
}

// record returns the row of a case.
func (s *Sweep) record(r Row) record {
	list := record{parquet.Int64Value(r.Case)}
	for i := range s.parameters {
		p := &s.parameters[i]
		list = append(list, parquet.DoubleValue(p.values[p.index(r.Case)]))
	}

	for _, v := range r.Results {
		if v == nil {
			list = append(list, parquet.NullValue())
		} else {
			list = append(list, parquet.DoubleValue(*v))
		}
	}

	text := func(s string) parquet.Value {
		if s == "" {
			return parquet.NullValue()
		}
		return parquet.ByteArrayValue([]byte(s))
	}

	if s.judged && r.Judged {
		list = append(list, parquet.BooleanValue(r.Broken == ""), text(r.Broken))
	} else if s.judged {
		list = append(list, parquet.NullValue(), parquet.NullValue())
	}

	return append(list, text(r.Failed))
}

// mark begins the checksum of a file in its metadata: SHA-256 of the file with zeros in place of
// the sum, hexadecimal. It is checked first, because the library may not terminate on a damaged
// file.
const mark = "lockstep-sha256:"

// seal returns the place of the checksum in a file, nil if there is none, and the right checksum.
func seal(data []byte) (place []byte, sum string) {
	at := bytes.LastIndex(data, []byte(mark)) + len(mark)
	if at < len(mark) || at+2*sha256.Size > len(data) {
		return nil, ""
	}
	place = data[at : at+2*sha256.Size]
	there := bytes.Clone(place)
	copy(place, unsealed)
	h := sha256.Sum256(data)
	copy(place, there)
	return place, hex.EncodeToString(h[:])
}

var unsealed = strings.Repeat("0", 2*sha256.Size)

// writeParquet writes a file, through a draft.
func writeParquet(path, draft string, h head, rows []record) error {
	h.Rows = int64(len(rows))
	about, err := json.Marshal(h)
	if err != nil {
		return err
	}
	data := new(bytes.Buffer)
	w := parquet.NewWriter(data, schema(h.Sweep, h.Columns), parquet.KeyValueMetadata(headKey, string(about)),
		parquet.KeyValueMetadata("seal", mark+unsealed), parquet.CreatedBy("lockstep", "", ""))
	for _, c := range h.Columns {
		if c.Unit != "" {
			w.SetKeyValueMetadata("unit."+c.Name, c.Unit)
		}
	}

	for _, row := range rows {
		for i := range row {
			level := 0
			if nodes[h.Columns[i].Kind].Optional() && !row[i].IsNull() {
				level = 1
			}
			row[i] = row[i].Level(0, level, i)
		}

		if _, err := w.WriteRows([]parquet.Row{parquet.Row(row)}); err != nil {
			return err
		}
	}

	if err := w.Close(); err != nil {
		return err
	}
	place, sum := seal(data.Bytes())
	copy(place, sum)
	return replace(path, draft, func(f io.Writer) error {
		_, err := f.Write(data.Bytes())
		return err
	})
}

// replace writes a file through a hidden draft in the same folder, which it renames after a sync.
// It reuses the draft of a killed process, and waits for another process that has it locked.
func replace(path, draft string, write func(io.Writer) error) (err error) {
	draft = filepath.Join(filepath.Dir(path), "."+draft+".draft")
	f, err := openLocked(func() (*os.File, error) { return os.OpenFile(draft, os.O_RDWR|os.O_CREATE, 0o644) }, 0)
	if err != nil {
		return refused(err)
	}
	defer func() {
		if err != nil {
			os.Remove(draft)
			f.Close()
			err = refused(err)
		}
	}()

	if err = errors.Join(f.Truncate(0), write(f), f.Sync()); err != nil {
		return err
	}
	if err = errors.Join(os.Rename(draft, path), f.Close()); err != nil { // renamed before the lock is released
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// ErrDamaged is the error of a file that is not an intact file of a sweep.
var ErrDamaged = errors.New("is damaged, or not a file of a sweep")

// readParquet reads a file of a sweep. A damaged file, or another kind of file, is an error.
func readParquet(path string) (h head, rows []record, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s %w: %w", path, ErrDamaged, err)
		}
	}()

	data, err := inputfile.Read(path, inputfile.Table)
	if err != nil {
		return h, nil, err
	}
	if place, sum := seal(data); place == nil || string(place) != sum {
		return h, nil, errors.New("wrong SHA-256")
	}
	p, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return h, nil, err
	}
	about, ok := p.Lookup(headKey)
	if !ok {
		return h, nil, errors.New("no metadata of a sweep")
	}
	if err := json.Unmarshal([]byte(about), &h); err != nil {
		return h, nil, err
	}
	for _, g := range p.RowGroups() {
		if rows, err = readRows(g, rows); err != nil {
			return h, nil, err
		}
	}

	return h, rows, nil
}

func readRows(g parquet.RowGroup, rows []record) ([]record, error) {
	in := g.Rows()
	defer in.Close()
	buffer := make([]parquet.Row, 64)
	for {
		n, err := in.ReadRows(buffer)
		for _, row := range buffer[:n] {
			rows = append(rows, record(row.Clone()))
		}
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
