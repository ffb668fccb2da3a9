package sweep

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"lockstep/model/units"
	"lockstep/rt/bench"
	"lockstep/rt/host"
)

// Merge merges the shards in a folder into one table, out: .parquet or .csv. hash selects the
// shards of a sweep; "": all shards, which must be of one sweep. With si, the table is in SI.
func Merge(dir, out, hash string, si bool) (*Outcome, error) {
	ending := filepath.Ext(out)
	if ending != ".parquet" && ending != ".csv" {
		return nil, fmt.Errorf("sweep: -o %s: a table is written as .parquet or .csv", out)
	}
	paths, err := shardsToMerge(dir, hash)
	if err != nil {
		return nil, err
	}

	var first head
	shards := map[int64][]record{}
	for i, path := range paths {
		h, rows, err := readParquet(path)
		if err != nil {
			return nil, fmt.Errorf("sweep: %w: run its shard again", err)
		}
		if i == 0 {
			first = h
			hash = cmp.Or(hash, h.Hash)
		}

		_, twice := shards[h.Shard]
		switch {
		case h.Hash != hash:
			return nil, fmt.Errorf("sweep: %s %w, %s-%s and not %s: the values, the version of the command or "+
				"the architecture differ; sweep SWEEP -merge merges the shards of one sweep only",
				path, ErrOtherSweep, h.Sweep, h.Hash[:12], hash[:12])
		case h.Shards != first.Shards:
			return nil, fmt.Errorf("sweep: %s is of %d shards, %s of %d", path, h.Shards, paths[0], first.Shards)
		case twice:
			return nil, fmt.Errorf("sweep: %s is shard %d, like another file in %s", path, h.Shard, dir)
		case h.Rows != (Shard{I: h.Shard, N: h.Shards}).cases(h.Cases):
			return nil, fmt.Errorf("sweep: %s has %d rows: cases are missing", path, h.Rows)
		}

		shards[h.Shard] = rows
	}

	if err := missing(shards, first.Shards, dir); err != nil {
		return nil, err
	}
	return first.merge(shards, out, si)
}

// shardsToMerge returns the files of shards in a folder. If there are files with the hash, it
// returns these only, since older ones may be from before a change of the sweep.
func shardsToMerge(dir, hash string) ([]string, error) {
	files, err := shardFiles(dir)
	if err != nil {
		return nil, err
	}
	var own, all []string
	for _, f := range files {
		if path := filepath.Join(dir, f.name); f.ending == "parquet" {
			all = append(all, path)
			if strings.HasPrefix(hash, f.hash) {
				own = append(own, path)
			}
		}
	}

	switch {
	case len(all) == 0:
		return nil, fmt.Errorf("sweep: %w in %s", ErrNoShard, dir)
	case len(own) == 0:
		return all, nil
	}

	return own, nil
}

// Reasons to refuse a merge.
var (
	ErrOtherSweep = errors.New("is of another sweep")
	ErrNoShard    = errors.New("there is no file of a shard")
)

// missing returns an error with the first 20 missing shards; nil: none is missing.
func missing(shards map[int64][]record, n int64, dir string) error {
	var list []string
	for i := range n {
		if _, ok := shards[i]; !ok {
			list = append(list, fmt.Sprint(i))
		}
	}

	count := len(list)
	switch {
	case count == 0:
		return nil
	case count > 20:
		list = append(list[:20], "...")
	}

	return fmt.Errorf("sweep: %d of %d shards are missing in %s: %s", count, n, dir, strings.Join(list, ", "))
}

// merge writes the table in the order of the cases: case c is row c/N of its shard.
func (h head) merge(shards map[int64][]record, out string, si bool) (*Outcome, error) {
	var rows []record
	for number := range h.Cases {
		shard := shardOf(number, h.Shards)
		row := shards[shard][number/h.Shards]
		if row[0].Int64() != number {
			return nil, fmt.Errorf("sweep: shard %d has case %d in the place of case %d", shard, row[0].Int64(), number)
		}
		rows = append(rows, row)
	}

	if si {
		if err := h.toSI(rows); err != nil {
			return nil, err
		}
	}
	kind := map[string]string{".parquet": "table", ".csv": "inputs"}[filepath.Ext(out)]
	if err := bench.CheckResult(out, kind); err != nil {
		return nil, fmt.Errorf("sweep: -o: %w", err)
	}
	h.Shard, h.Shards = 0, 1
	o := newOutcome(out, h, rows)
	if filepath.Ext(out) == ".parquet" {
		return o, writeParquet(out, filepath.Base(out), h, rows)
	}
	return o, replace(out, filepath.Base(out), func(f io.Writer) error { return writeCSV(f, h.Columns, rows) })
}

// toSI converts the columns with a unit to SI.
func (h *head) toSI(rows []record) error {
	h.Columns = slices.Clone(h.Columns)
	for i := range h.Columns {
		c := &h.Columns[i]
		unit, err := units.ParseWanted(c.Unit)
		if err != nil {
			return fmt.Errorf("sweep: column %s: %s", c.Name, units.Reason(err))
		}
		if c.Kind != Parameter && c.Kind != Result || unit.Factor == 1 && unit.Zero == 0 {
			continue
		}
		c.Unit = columnUnit(unit.SI)
		for _, row := range rows {
			if !row[i].IsNull() {
				row[i] = parquet.DoubleValue(unit.ToSI(row[i].Double()))
			}
		}
	}

	return nil
}

// writeCSV writes a header of name[unit]; null is an empty field.
func writeCSV(to io.Writer, columns []Column, rows []record) error {
	w := csv.NewWriter(to)
	fields := make([]string, len(columns))
	for i, c := range columns {
		fields[i] = c.title()
	}
	err := w.Write(fields)
	for _, row := range rows {
		for i, v := range row {
			fields[i] = field(v)
		}
		err = errors.Join(err, w.Write(fields))
	}

	w.Flush()
	return errors.Join(err, w.Error())
}

// title returns the column's name with its unit.
func (c Column) title() string {
	if c.Unit == "" {
		return c.Name
	}
	return c.Name + "[" + c.Unit + "]"
}

func field(v parquet.Value) string {
	switch {
	case v.IsNull():
		return ""
	case v.Kind() == parquet.Double:
		return strconv.FormatFloat(v.Double(), 'g', -1, 64)
	case v.Kind() == parquet.ByteArray:
		return string(v.ByteArray())
	}

	return v.String()
}

// AllFailed returns an error, with the reason of the first case, if every case of a whole table
// failed; otherwise nil.
func (o *Outcome) AllFailed() error {
	if o.Failed == 0 || o.Failed < o.Rows || o.Head.Shards != 1 {
		return nil
	}
	row := o.records[0]
	return &host.Exit{Code: 1, Err: fmt.Errorf("sweep: all %d cases failed, case %d: %s",
		o.Rows, row[0].Int64(), row[len(row)-1].ByteArray())}
}

// Text writes a summary for people: the smallest and the largest value of each result, with their
// cases.
func (o *Outcome) Text(w io.Writer) {
	for i, c := range o.Head.Columns {
		if c.Kind != Result {
			continue
		}
		var with []record
		for _, row := range o.records {
			if !row[i].IsNull() {
				with = append(with, row)
			}
		}

		if len(with) == 0 {
			fmt.Fprintf(w, "  %-24s none in all cases\n", c.title())
			continue
		}

		by := func(a, b record) int { return cmp.Compare(a[i].Double(), b[i].Double()) }
		least, most := slices.MinFunc(with, by), slices.MaxFunc(with, by)
		none := ""
		if n := len(o.records) - len(with); n > 0 {
			none = fmt.Sprintf(", none in %d", n)
		}
		fmt.Fprintf(w, "  %-24s %-12.6g in case %-8d to %-12.6g in case %d%s\n", c.title(),
			least[i].Double(), least[0].Int64(), most[i].Double(), most[0].Int64(), none)
	}

	o.verdicts(w)
}

// verdicts writes in how many cases all expectations held.
func (o *Outcome) verdicts(w io.Writer) {
	i := slices.IndexFunc(o.Head.Columns, func(c Column) bool { return c.Kind == Verdict })
	if i < 0 {
		return
	}
	held, judged := 0, 0
	for _, row := range o.records {
		if !row[i].IsNull() {
			judged++
			if row[i].Boolean() {
				held++
			}
		}
	}

	fmt.Fprintf(w, "  %-24s all expectations in %d of %d cases\n", "held", held, judged)
}
