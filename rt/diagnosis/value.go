package diagnosis

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"lockstep/io/uds"
	"lockstep/io/yamlfile"
	"lockstep/model/units"
)

// Value is a value of a data identifier: bytes of its answer, and their meaning.
type Value struct {
	Name string
	ID   uint16
	From int    // first byte in the data of the identifier
	Size int    // bytes; 0: all that follow
	Type string // "unsigned", "signed", "text" or "bytes"

	Factor, Offset float64     // number = Factor·raw + Offset
	Unit           string      // of the number; "1": none
	Table          []tableText // texts of raw values; nil: none
	wanted         units.Wanted
}

// tableText is the text of raw values from Lo to Hi.
type tableText struct {
	Lo, Hi int64
	Text   string
}

// valueTypes are the types of a value.
var valueTypes = []string{"unsigned", "signed", "text", "bytes"}

func (s *Spec) readValue(r *yamlfile.Reader, e yamlfile.Field) {
	what := "did " + e.Key
	f := r.Section(e, what, "id", "from", "bytes", "type", "factor", "offset", "unit", "table")
	if f["id"].IsMissing() {
		r.FailAt(e.KeyAt, "%s: the identifier is missing (id: 0x1001)", what)
	}
	v := Value{Name: e.Key, ID: uint16(r.Unsigned(f["id"], what+": id", 0xFFFF)), From: r.Integer(f["from"], what+": from", 0, 4000),
		Size: r.Integer(f["bytes"], what+": bytes", 1, 4000), Type: r.Choice(f["type"], what+": type", valueTypes...), Factor: 1, Unit: "1"}
	for key, dst := range map[string]*float64{"factor": &v.Factor, "offset": &v.Offset} {
		if f[key].IsMissing() {
			continue
		}
		text := r.Scalar(f[key], what+": "+key).Text
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(n, 0) || n != n || key == "factor" && n == 0 {
			r.Fail(f[key], "%s: %s %q is not a number, or 0", what, key, text)
		}
		*dst = n
	}
	if !f["unit"].IsMissing() {
		v.Unit = r.Scalar(f["unit"], what+": unit").Text
	}
	for _, g := range r.FieldsOf(f["table"], what+": table") {
		lo, hi, err := parseRange(g.Key)
		if err != nil {
			r.FailAt(g.KeyAt, "%s: table: %v", what, err)
		}
		v.Table = append(v.Table, tableText{lo, hi, r.Scalar(g, what+": table: "+g.Key).Text})
	}
	if err := v.complete(); err != nil {
		r.FailAt(e.KeyAt, "%s: %v", what, err)
	}
	s.Values = append(s.Values, v)
}

// parseRange reads "3" or "3-5".
func parseRange(text string) (lo, hi int64, err error) {
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	from, to, isRange := strings.Cut(text, "-")
	from = sign + from
	lo, err = strconv.ParseInt(from, 0, 64)
	if hi = lo; err == nil && isRange {
		hi, err = strconv.ParseInt(to, 0, 64)
	}
	if err != nil || hi < lo {
		return 0, 0, fmt.Errorf("%q is neither a raw value nor a range like 3-5", sign+text)
	}
	return lo, hi, nil
}

// complete sets the type that the file leaves out, and checks the value.
func (v *Value) complete() error {
	if v.Type == "" {
		v.Type = "unsigned"
		if v.Size == 0 {
			v.Type = "bytes"
		}
	}
	v.wanted = units.WantSignal(v.Unit)
	numeric := v.IsNumber()
	switch {
	case numeric && (v.Size < 1 || v.Size > 8):
		return fmt.Errorf("a number has 1 to 8 bytes (bytes: 2)")
	case !numeric && (v.Factor != 1 || v.Offset != 0 || v.Unit != "1" || v.Table != nil):
		return fmt.Errorf("factor, offset, unit and table belong to numbers; this is %s", v.Type)
	}
	return nil
}

// IsNumber reports whether the value is a number.
func (v *Value) IsNumber() bool { return v.Type == "unsigned" || v.Type == "signed" }

// Wanted returns the unit of the number.
func (v *Value) Wanted() units.Wanted { return v.wanted }

// raw returns the raw number in the data of the identifier.
func (v *Value) raw(data []byte) (int64, error) {
	if len(data) < v.From+v.Size {
		return 0, fmt.Errorf("%s of 0x%04X needs %d bytes, the unit sent %d: %s", v.Name, v.ID, v.From+v.Size, len(data), uds.Bytes(data))
	}
	u := uint64(0)
	for _, b := range data[v.From : v.From+v.Size] {
		u = u<<8 | uint64(b)
	}
	if shift := 64 - 8*v.Size; v.Type == "signed" {
		return int64(u<<shift) >> shift, nil
	}
	return int64(u), nil
}

// Number returns the number in the data of the identifier, in its unit.
func (v *Value) Number(data []byte) (float64, error) {
	raw, err := v.raw(data)
	if err != nil {
		return 0, err
	}
	n := float64(raw)
	if v.Type == "unsigned" {
		n = float64(uint64(raw))
	}
	return float64(v.Factor*n) + v.Offset, nil
}

// Format returns the value in the data of the identifier for people: number and unit, text of the table, text or
// bytes.
func (v *Value) Format(data []byte) (string, error) {
	if !v.IsNumber() {
		if len(data) < v.From+max(v.Size, 1) {
			return "", fmt.Errorf("%s of 0x%04X needs %d bytes, the unit sent %d", v.Name, v.ID, v.From+max(v.Size, 1), len(data))
		}
		part := data[v.From:]
		if v.Size > 0 {
			part = part[:v.Size]
		}
		if v.Type == "text" {
			return strconv.Quote(strings.TrimRight(string(part), "\x00 ")), nil
		}
		return uds.Bytes(part), nil
	}
	n, err := v.Number(data)
	if err != nil {
		return "", err
	}
	raw, _ := v.raw(data)
	for _, t := range v.Table {
		if raw >= t.Lo && raw <= t.Hi {
			return t.Text, nil
		}
	}
	return units.WithUnit(strconv.FormatFloat(n, 'g', 9, 64), v.Unit), nil
}

// Encode returns the bytes of a text: a number with its unit, a text of the table, a text or hexadecimal bytes.
func (v *Value) Encode(text string) ([]byte, error) {
	switch v.Type {
	case "text":
		b := []byte(strings.Trim(text, `"`))
		if v.Size > 0 && len(b) > v.Size {
			return nil, fmt.Errorf("%s: %q has %d bytes, want at most %d", v.Name, text, len(b), v.Size)
		}
		return append(b, make([]byte, max(0, v.Size-len(b)))...), nil
	case "bytes":
		b, err := ParseBytes(text)
		if err == nil && v.Size > 0 && len(b) != v.Size {
			err = fmt.Errorf("%s: %d bytes, want %d", v.Name, len(b), v.Size)
		}
		return b, err
	}
	if i := slices.IndexFunc(v.Table, func(t tableText) bool { return t.Text == text }); i >= 0 {
		return v.pack(float64(v.Table[i].Lo))
	}
	si, err := v.wanted.Typed(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", v.Name, units.Reason(err))
	}
	return v.pack(math.RoundToEven((v.wanted.FromSI(si) - v.Offset) / v.Factor))
}

// pack returns the bytes of a raw number.
func (v *Value) pack(raw float64) ([]byte, error) {
	lo, hi := 0.0, math.Pow(2, float64(8*v.Size))-1
	if v.Type == "signed" {
		lo, hi = -math.Pow(2, float64(8*v.Size-1)), math.Pow(2, float64(8*v.Size-1))-1
	}
	if !(raw >= lo && raw <= hi) || math.Abs(raw) > 1<<53 {
		return nil, fmt.Errorf("%s: the raw value %g is not from %g to %g, the range of %d bytes", v.Name, raw, lo, hi, v.Size)
	}
	b := make([]byte, v.Size)
	for i, u := v.Size-1, uint64(int64(raw)); i >= 0; i, u = i-1, u>>8 {
		b[i] = byte(u)
	}
	return b, nil
}

// ParseBytes reads hexadecimal bytes: "10 01 A5" or "1001A5".
func ParseBytes(text string) ([]byte, error) {
	text = strings.TrimPrefix(strings.ReplaceAll(text, " ", ""), "0x")
	if len(text) == 0 || len(text)%2 != 0 {
		return nil, fmt.Errorf("%.60q is not bytes like 10 01 A5", text)
	}
	b := make([]byte, len(text)/2)
	for i := range b {
		n, err := strconv.ParseUint(text[2*i:2*i+2], 16, 8)
		if err != nil {
			return nil, fmt.Errorf("%.60q is not bytes like 10 01 A5", text)
		}
		b[i] = byte(n)
	}
	return b, nil
}

// FindValues returns the identifier of a name or a number, and its values.
func (s *Spec) FindValues(text string) (id uint16, list []Value, err error) {
	if s.Node != nil {
		return 0, nil, fmt.Errorf("the unit of %s is on SAE J1939 and has no identifiers; dtc and no_dtc read its trouble codes", s.File)
	}
	var names []string
	for _, v := range s.Values {
		if names = append(names, v.Name); v.Name == text {
			return v.ID, []Value{v}, nil
		}
	}
	n, err := strconv.ParseUint(text, 0, 16)
	if err != nil || !strings.HasPrefix(text, "0x") {
		return 0, nil, fmt.Errorf("there is no identifier %.60q%s in %s; use 0x and four digits, or one of: %s", text, units.Meant(text, names), s.File, strings.Join(names, ", "))
	}
	for _, v := range s.Values {
		if v.ID == uint16(n) {
			list = append(list, v)
		}
	}
	return uint16(n), list, nil
}

// size returns the number of bytes of the data of an identifier; 0: not known.
func (s *Spec) size(id uint16) (n int) {
	for _, v := range s.Values {
		if v.ID == id {
			if v.Size == 0 {
				return 0
			}
			n = max(n, v.From+v.Size)
		}
	}
	return n
}

// format returns the data of an identifier for people, a line for each of its values.
func (s *Spec) format(id uint16, values []Value, data []byte) ([]string, error) {
	var list []string
	for _, v := range values {
		text, err := v.Format(data)
		if err != nil {
			return nil, err
		}
		list = append(list, v.Name+" "+text)
	}
	if list == nil {
		list = []string{fmt.Sprintf("0x%04X %s", id, uds.Bytes(data))}
	}
	return list, nil
}
