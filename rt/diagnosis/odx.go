package diagnosis

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"lockstep/io/uds"
)

// Limits of an ODX file.
const (
	maxODXDepth = 100
	maxODXNodes = 2_000_000
	largestODX  = 256 << 20 // bytes of all files of a PDX, unpacked
)

// odxNode is an element of an ODX file.
type odxNode struct {
	name  string
	attrs map[string]string
	text  string
	nodes []*odxNode
}

// child returns the first element on a path of names below the node; nil: there is none.
func (n *odxNode) child(path ...string) *odxNode {
	for _, name := range path {
		if n == nil {
			return nil
		}
		i := slices.IndexFunc(n.nodes, func(c *odxNode) bool { return c.name == name })
		if i < 0 {
			return nil
		}
		n = n.nodes[i]
	}
	return n
}

// value returns the text of the element on a path; "": there is none.
func (n *odxNode) value(path ...string) string {
	if n = n.child(path...); n == nil {
		return ""
	}
	return strings.TrimSpace(n.text)
}

// each calls f for all elements of a name below the node.
func (n *odxNode) each(name string, f func(*odxNode)) {
	for _, c := range n.nodes {
		if c.name == name {
			f(c)
		}
		c.each(name, f)
	}
}

// parseODX reads an ODX file as a tree.
func parseODX(name string, from io.Reader) (*odxNode, error) {
	d := xml.NewDecoder(from)
	root := &odxNode{}
	stack, count := []*odxNode{root}, 0
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			if len(root.nodes) == 0 || root.nodes[0].name != "ODX" {
				return nil, fmt.Errorf("%s is not an ODX file: its top element is not ODX", name)
			}
			return root.nodes[0], nil
		}
		line, col := d.InputPos()
		if err != nil {
			return nil, fmt.Errorf("%s:%d:%d: %w", name, line, col, err)
		}
		top := stack[len(stack)-1]
		switch t := t.(type) {
		case xml.StartElement:
			n := &odxNode{name: t.Name.Local, attrs: map[string]string{}}
			for _, a := range t.Attr {
				n.attrs[a.Name.Local] = a.Value
			}
			top.nodes, stack = append(top.nodes, n), append(stack, n)
			if count++; count > maxODXNodes || len(stack) > maxODXDepth {
				return nil, fmt.Errorf("%s:%d:%d: more than %d elements, or deeper than %d", name, line, col, maxODXNodes, maxODXDepth)
			}
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		case xml.CharData:
			if len(top.text) < 1<<12 {
				top.text += string(t)
			}
		}
	}
}

// addODX adds trouble codes and identifiers of an ODX or PDX file. Those of the diagnosis file take precedence.
func (s *Spec) addODX(name string) error {
	data, err := s.open(name)
	if err != nil {
		return err
	}
	o := odx{elements: map[string]*odxNode{}, ignored: map[string]int{}}
	if bytes.HasPrefix(data, []byte("PK\x03\x04")) {
		err = o.openPDX(name, data)
	} else {
		err = o.open(name, bytes.NewReader(data))
	}
	if err != nil {
		return err
	}
	for _, f := range o.files {
		f.each("DTC-DOP", func(n *odxNode) { o.addCodes(s, n) })
		f.each("DIAG-SERVICE", func(n *odxNode) { o.addService(s, n) })
	}
	for _, kind := range slices.Sorted(maps.Keys(o.ignored)) {
		s.Ignored = append(s.Ignored, fmt.Sprintf("%s: %d %s", name, o.ignored[kind], kind))
	}
	return nil
}

// odx is an ODX file, or those of a PDX, that are read.
type odx struct {
	files    []*odxNode
	elements map[string]*odxNode // by ID
	ignored  map[string]int      // how many elements of a kind are not read
}

// open reads one ODX file.
func (o *odx) open(name string, from io.Reader) error {
	root, err := parseODX(name, from)
	if err != nil {
		return err
	}
	o.files = append(o.files, root)
	o.index(root)
	return nil
}

// notRead are elements that carry more than DTCs and simple identifiers.
var notRead = []string{"COMPARAM-SPEC", "COMPARAM-SUBSET", "SINGLE-ECU-JOB", "STRUCTURE", "MUX", "END-OF-PDU-FIELD", "DYNAMIC-LENGTH-FIELD", "STATIC-FIELD",
	"ENV-DATA", "ENV-DATA-DESC", "TABLE", "STATE-CHART", "FUNCT-CLASS", "ECU-MEM", "FLASH", "VEHICLE-INFO-SPEC", "MULTIPLE-ECU-JOB", "NEG-RESPONSE", "GLOBAL-NEG-RESPONSE"}

// index notes the elements with an ID, and counts those that are not read.
func (o *odx) index(n *odxNode) {
	for _, c := range n.nodes {
		if id := c.attrs["ID"]; id != "" && o.elements[id] == nil {
			o.elements[id] = c
		}
		if slices.Contains(notRead, c.name) {
			o.ignored[c.name]++
		}
		o.index(c)
	}
}

// openPDX reads the ODX files of a PDX, which is an archive (ZIP).
func (o *odx) openPDX(name string, data []byte) error {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	left := int64(largestODX)
	for _, f := range z.File {
		inside := name + "/" + f.Name
		if !strings.Contains(strings.ToLower(f.Name), ".odx") {
			o.ignored["file "+f.Name]++
			continue
		}
		from, err := f.Open()
		if err != nil {
			return fmt.Errorf("%s: %w", inside, err)
		}
		limited := &io.LimitedReader{R: from, N: left}
		err = o.open(inside, limited)
		_ = from.Close() // it was only read
		if left = limited.N; left <= 0 {
			return fmt.Errorf("%s: its files have more than %d MB", name, largestODX>>20)
		}
		if err != nil {
			return err
		}
	}
	if len(o.files) == 0 {
		return fmt.Errorf("%s has no ODX file", name)
	}
	return nil
}

// refer returns the element of a reference: by ID, or by short name in the whole file.
func (o *odx) refer(n *odxNode, kind string) *odxNode {
	if r := n.child(kind + "-REF"); r != nil {
		return o.elements[r.attrs["ID-REF"]]
	}
	r := n.child(kind + "-SNREF")
	if r == nil {
		return nil
	}
	for _, f := range o.files {
		var found *odxNode
		for _, name := range []string{"DATA-OBJECT-PROP", "REQUEST", "POS-RESPONSE"} {
			f.each(name, func(c *odxNode) {
				if found == nil && c.value("SHORT-NAME") == r.attrs["SHORT-NAME"] {
					found = c
				}
			})
		}
		if found != nil {
			return found
		}
	}
	return nil
}

// addCodes adds the trouble codes of a DTC-DOP.
func (o *odx) addCodes(s *Spec, n *odxNode) {
	n.each("DTC", func(d *odxNode) {
		number, err := strconv.ParseUint(d.value("TROUBLE-CODE"), 0, 24)
		if err != nil {
			o.ignored["DTC without a code of 24 bits"]++
			return
		}
		c := Code{Name: d.value("DISPLAY-TROUBLE-CODE"), Text: d.value("TEXT"), Code: uint32(number)}
		if c.Name == "" {
			c.Name = uds.FormatDTC(c.Code)
		}
		if !slices.ContainsFunc(s.Codes, func(k Code) bool { return k.Code == c.Code || k.Name == c.Name }) {
			s.Codes = append(s.Codes, c)
		}
	})
}

// constants returns the bytes of the CODED-CONST parameters at the start of a request.
func constants(request *odxNode) (list []byte) {
	params := request.child("PARAMS")
	if params == nil {
		return nil
	}
	for _, p := range params.nodes {
		v, err := strconv.ParseUint(p.value("CODED-VALUE"), 0, 32)
		bits, err2 := strconv.Atoi(p.value("DIAG-CODED-TYPE", "BIT-LENGTH"))
		if p.attrs["type"] != "CODED-CONST" || err != nil || err2 != nil || bits%8 != 0 || bits > 32 {
			return list
		}
		for bits -= 8; bits >= 0; bits -= 8 {
			list = append(list, byte(v>>bits))
		}
	}
	return list
}

// addService adds the identifier that a service reads.
func (o *odx) addService(s *Spec, n *odxNode) {
	request := o.refer(n, "REQUEST")
	var answer *odxNode
	if refs := n.child("POS-RESPONSE-REFS"); refs != nil {
		answer = o.refer(refs, "POS-RESPONSE")
	}
	if request == nil || answer == nil {
		o.ignored["DIAG-SERVICE without a request or an answer"]++
		return
	}
	begin := constants(request)
	if len(begin) != 3 || begin[0] != uds.ReadData {
		o.ignored["DIAG-SERVICE of other kinds"]++
		return
	}
	params, service := answer.child("PARAMS"), n.value("SHORT-NAME")
	if params == nil {
		return
	}
	var list []Value
	for _, p := range params.nodes {
		if p.attrs["type"] != "VALUE" {
			continue
		}
		v, err := o.value(p)
		if err != nil {
			o.ignored["parameter: "+err.Error()]++
			continue
		}
		v.ID = uint16(begin[1])<<8 | uint16(begin[2])
		v.Name = p.value("SHORT-NAME")
		list = append(list, v)
	}
	for i := range list {
		if len(list) == 1 {
			list[i].Name = service
		} else {
			list[i].Name = service + "." + list[i].Name
		}
		if !slices.ContainsFunc(s.Values, func(v Value) bool { return v.Name == list[i].Name }) {
			s.Values = append(s.Values, list[i])
		}
	}
}

// value returns the value of a parameter of an answer. The data of the identifier begin after 3 bytes of the answer.
func (o *odx) value(p *odxNode) (v Value, err error) {
	dop := o.refer(p, "DOP")
	if dop == nil || dop.name != "DATA-OBJECT-PROP" {
		return v, errors.New("no DATA-OBJECT-PROP")
	}
	at, err := strconv.Atoi(p.value("BYTE-POSITION"))
	if err != nil || at < 3 || at > 4000 || p.value("BIT-POSITION") != "" && p.value("BIT-POSITION") != "0" {
		return v, errors.New("not at a whole byte")
	}
	v = Value{From: at - 3, Factor: 1, Unit: "1"}
	coded := dop.child("DIAG-CODED-TYPE")
	if coded == nil {
		return v, errors.New("no DIAG-CODED-TYPE")
	}
	bits, err := strconv.Atoi(coded.value("BIT-LENGTH"))
	if err != nil || bits < 8 || bits%8 != 0 || bits > 8*4000 {
		return v, errors.New("no whole bytes")
	}
	v.Size = bits / 8
	kind, known := map[string]string{"A_UINT32": "unsigned", "A_INT32": "signed", "A_ASCIISTRING": "text", "A_UTF8STRING": "text", "A_BYTEFIELD": "bytes"}[coded.attrs["BASE-DATA-TYPE"]]
	if v.Type = kind; !known || coded.attrs["IS-HIGHLOW-BYTE-ORDER"] == "false" && bits > 8 {
		return v, fmt.Errorf("type %s, or another order of bytes", coded.attrs["BASE-DATA-TYPE"])
	}
	if unit := dop.child("UNIT-REF"); unit != nil {
		if u := o.elements[unit.attrs["ID-REF"]]; u != nil {
			v.Unit = u.value("DISPLAY-NAME")
		}
	}
	if err := v.convert(dop.child("COMPU-METHOD")); err != nil {
		return v, err
	}
	if !v.IsNumber() {
		v.Unit = "1"
	}
	return v, v.complete()
}

// convert sets the conversion of a COMPU-METHOD.
func (v *Value) convert(m *odxNode) error {
	category := "IDENTICAL"
	if m != nil {
		category = m.value("CATEGORY")
	}
	var scales []*odxNode
	if m != nil {
		m.each("COMPU-SCALE", func(n *odxNode) { scales = append(scales, n) })
	}
	switch category {
	case "IDENTICAL":
		return nil
	case "LINEAR":
		if len(scales) != 1 {
			return errors.New("LINEAR without its scale")
		}
		return v.convertLinear(scales[0].child("COMPU-RATIONAL-COEFFS"))
	case "TEXTTABLE":
		for _, n := range scales {
			lo, err := strconv.ParseInt(n.value("LOWER-LIMIT"), 0, 64)
			hi, err2 := lo, error(nil)
			if text := n.value("UPPER-LIMIT"); text != "" {
				hi, err2 = strconv.ParseInt(text, 0, 64)
			}
			if err != nil || err2 != nil || hi < lo {
				return errors.New("TEXTTABLE with a limit that is no whole number")
			}
			v.Table = append(v.Table, tableText{lo, hi, n.value("COMPU-CONST", "VT")})
		}
		return nil
	}
	return fmt.Errorf("conversion %s", category)
}

// convertLinear sets number = (n0 + n1·raw)/d0.
func (v *Value) convertLinear(c *odxNode) error {
	if c == nil {
		return errors.New("LINEAR without coefficients")
	}
	numbers := func(name string) (list []float64) {
		if part := c.child(name); part != nil {
			part.each("V", func(n *odxNode) {
				if f, err := strconv.ParseFloat(strings.TrimSpace(n.text), 64); err == nil {
					list = append(list, f)
				}
			})
		}
		return list
	}
	n, d := numbers("COMPU-NUMERATOR"), append(numbers("COMPU-DENOMINATOR"), 1)
	if len(n) != 2 || n[1] == 0 || d[0] == 0 || len(d) > 2 {
		return errors.New("LINEAR with other coefficients than n0, n1 and d0")
	}
	v.Factor, v.Offset = n[1]/d[0], n[0]/d[0]
	return nil
}
