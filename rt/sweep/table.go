package sweep

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/parquet-go/parquet-go"
)

// The library is at v0.25.1 on purpose: later ones link protocol buffers and geometry into
// the command, 8 MB more.

// head is what a Parquet file of a sweep says of itself, as JSON under the key "lockstep".
type head struct {
	Sweep   string   `json:"sweep"`
	Hash    string   `json:"hash"`
	Shard   int64    `json:"shard"`
	Shards  int64    `json:"shards"` // 1 of a table that was merged
	Cases   int64    `json:"cases"`  // of the sweep
	Rows    int64    `json:"rows"`   // of the file
	Sum     string   `json:"sha256"` // of all values in their order
	Columns []Column `json:"columns"`
	File    string   `json:"file"` // the sweep file itself
}

const headKey = "lockstep"

// record is a row of a file: a value for each column, in their order.
type record []parquet.Value

// group is a group of columns in an order of their own.
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

func schema(name string, columns []Column) *parquet.Schema {
	g := group{Group: parquet.Group{}}
	for _, c := range columns {
		var n parquet.Node
		switch c.Kind {
		case Number:
			n = parquet.Leaf(parquet.Int64Type)
		case Parameter:
			n = parquet.Leaf(parquet.DoubleType)
		case Result:
			n = parquet.Optional(parquet.Leaf(parquet.DoubleType))
		case Verdict:
			n = parquet.Optional(parquet.Leaf(parquet.BooleanType))
		default:
			n = parquet.Optional(parquet.String())
		}
		g.Group[c.Name] = n
		g.order = append(g.order, c.Name)
	}
	return parquet.NewSchema(name, g)
}

// record is the row of a case.
func (s *Sweep) record(r *Row) record {
	list := record{parquet.Int64Value(r.Case)}
	for i := range s.parameters {
		p := &s.parameters[i]
		list = append(list, parquet.DoubleValue(p.value(p.index(r.Case))))
	}
	for _, v := range r.Results {
		if math.IsNaN(v) {
			list = append(list, parquet.NullValue())
		} else {
			list = append(list, parquet.DoubleValue(v))
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

// sum is what is kept of all values, to know a file that is whole.
func sum(rows []record) string {
	h := sha256.New()
	for _, row := range rows {
		for _, v := range row {
			fmt.Fprintf(h, "%d %d:%s", v.Kind(), len(v.Bytes()), v.Bytes())
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// writeParquet writes a file under another name and renames it when all of it is on the
// disk.
func writeParquet(path string, h head, rows []record) error {
	h.Rows, h.Sum = int64(len(rows)), sum(rows)
	about, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return replace(path, func(f io.Writer) error {
		w := parquet.NewWriter(f, schema(h.Sweep, h.Columns), parquet.KeyValueMetadata(headKey, string(about)),
			parquet.CreatedBy("lockstep", "", ""))
		for _, c := range h.Columns {
			if c.Unit != "" {
				w.SetKeyValueMetadata("unit."+c.Name, c.Unit)
			}
		}
		for _, row := range rows {
			for i := range row {
				level := 0
				if optional := h.Columns[i].Kind != Number && h.Columns[i].Kind != Parameter; optional && !row[i].IsNull() {
					level = 1
				}
				row[i] = row[i].Level(0, level, i)
			}
			if _, err := w.WriteRows([]parquet.Row{parquet.Row(row)}); err != nil {
				return err
			}
		}
		return w.Close()
	})
}

// replace writes a file under a name of its own, and renames it when it is on the disk.
func replace(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return refused(err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
			err = refused(err)
		}
	}()
	if err = errors.Join(write(f), f.Chmod(0o644), f.Sync()); err != nil {
		return err
	}
	if err = f.Close(); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// readParquet reads a file of a sweep; one that is not whole, or of something else, is an
// error.
func readParquet(path string) (h head, rows []record, err error) {
	defer func() { // the library trusts lengths that it reads
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
		if err != nil {
			err = fmt.Errorf("%s is damaged, or no file of a sweep: %w", path, err)
		}
	}()
	f, err := os.Open(path)
	if err != nil {
		return h, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return h, nil, err
	}
	p, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		return h, nil, err
	}
	about, ok := p.Lookup(headKey)
	if !ok {
		return h, nil, fmt.Errorf("it says nothing of a sweep")
	}
	if err := json.Unmarshal([]byte(about), &h); err != nil {
		return h, nil, err
	}
	for _, g := range p.RowGroups() {
		if rows, err = readRows(g, rows); err != nil {
			return h, nil, err
		}
	}
	if int64(len(rows)) != h.Rows || sum(rows) != h.Sum {
		return h, nil, fmt.Errorf("its values are not those that were written")
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
