package diagnosis

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockstep/io/can"
	"lockstep/io/inputfile"
	"lockstep/io/isotp"
	"lockstep/io/uds"
	"lockstep/io/yamlfile"
	"lockstep/model/units"
)

// Spec is a diagnosis file: how one unit is reached, and what its numbers mean.
type Spec struct {
	File      string
	Node      *Node // on SAE J1939; nil: the unit has UDS, and what follows describes it
	Transport isotp.Config
	Timing    uds.Timing
	OBD       uint32 // functional identifier of OBD requests
	Codes     []Code
	Values    []Value
	Routines  []Named
	Sessions  []Named
	Security  []Security
	Flash     Flash
	Ignored   []string // parts of an ODX file that are not read

	dir  string
	open func(name string) ([]byte, error) // reads a file that the diagnosis file names
}

// Code is a trouble code with its name and text.
type Code struct {
	Name, Text string
	Code       uint32 // 24 bits
}

// Named is a number with a name.
type Named struct {
	Name string
	ID   uint16
}

// Security is how a security level is unlocked: a program prints the key of a seed.
type Security struct {
	Level byte
	Exec  []string
}

// Flash is how an image is written.
type Flash struct {
	Session      byte   // session to enter; 0: none
	Unlock       byte   // security level; 0: none
	Erase, Check string // routines before and after; "": none
	Reset        byte   // kind of reset at the end; 0: none
	Download     uds.Download
}

// Parse reads a diagnosis file; dir is the folder of the programs that it names. open reads a file that it names; nil:
// from dir. Errors are "FILE:LINE:COL: diagnosis: ...".
func Parse(file, dir string, data []byte, open func(name string) ([]byte, error)) (s *Spec, err error) {
	r := &yamlfile.Reader{Origin: yamlfile.Origin{File: file, Owner: "diagnosis"}}
	if open == nil {
		open = func(name string) ([]byte, error) {
			if !filepath.IsAbs(name) {
				name = filepath.Join(dir, name)
			}
			return inputfile.Read(name, inputfile.Executable)
		}
	}
	err = r.Try(func() { s = read(r, dir, r.Document(data), open) })
	return s, err
}

// Load reads a diagnosis file.
func Load(name string) (*Spec, error) {
	data, err := inputfile.Read(name, inputfile.Text)
	if err != nil {
		return nil, err
	}
	return Parse(name, filepath.Dir(name), data, nil)
}

// The standard sessions and routines.
var (
	standardSessions = []Named{{"default", 1}, {"programming", 2}, {"extended", 3}}
	standardResets   = []Named{{"hard", uds.HardReset}, {"key", uds.KeyOffOn}, {"soft", uds.SoftReset}}
)

func read(r *yamlfile.Reader, dir string, n yamlfile.Node, open func(string) ([]byte, error)) *Spec {
	top := r.Section(yamlfile.Root(n), "diagnosis file", "uds", "odx", "j1939")
	if node := top["j1939"]; !node.IsMissing() {
		for _, key := range []string{"uds", "odx"} {
			if !top[key].IsMissing() {
				r.FailAt(top[key].KeyAt, "%s and j1939 are two units; write two files", key)
			}
		}
		s := &Spec{File: r.File}
		s.readNode(r, node)
		return s
	}
	if top["uds"].IsMissing() {
		r.FailAt(yamlfile.Pos{Line: 1, Col: 1}, "uds or j1939 is missing (uds: {request: 0x7E1, response: 0x7E9}, or j1939: {address: 0x03})")
	}
	f := r.Section(top["uds"], "uds", "request", "response", "functional", "addressing", "target", "source", "extension", "format",
		"length", "brs", "padding", "block_size", "separation", "longest", "wait_frames", "timing", "dtcs", "dids", "routines", "sessions", "security", "flash")
	s := &Spec{File: r.File, dir: dir, open: open, Sessions: slices.Clone(standardSessions)}
	s.readTransport(r, f)
	s.readTiming(r, f["timing"])
	for _, e := range r.FieldsOf(f["dtcs"], "dtcs") {
		s.readCode(r, e)
	}
	for _, e := range r.FieldsOf(f["dids"], "dids") {
		s.readValue(r, e)
	}
	s.Routines = readNamed(r, f["routines"], "routines", 0xFFFF)
	for _, n := range readNamed(r, f["sessions"], "sessions", 0x7F) {
		s.Sessions = append(slices.DeleteFunc(s.Sessions, func(o Named) bool { return o.Name == n.Name }), n)
	}
	for _, e := range r.FieldsOf(f["security"], "security") {
		s.readSecurity(r, e)
	}
	s.readFlash(r, f["flash"])
	if odx := top["odx"]; !odx.IsMissing() {
		if err := s.addODX(r.Scalar(odx, "odx").Text); err != nil {
			r.Fail(odx, "odx: %v", err)
		}
	}
	return s
}

// readID reads an identifier: 0x7E1, or with 29 bits if it is above 0x7FF or has eight digits.
func readID(r *yamlfile.Reader, f yamlfile.Field, what string) uint32 {
	text := r.Scalar(f, what).Text
	id := r.Unsigned(f, what, uint64(can.MaskEFF))
	if id > uint64(can.MaskSFF) || len(strings.TrimPrefix(text, "0x")) == 8 {
		return uint32(id) | can.EFF
	}
	return uint32(id)
}

func (s *Spec) readTransport(r *yamlfile.Reader, f map[string]yamlfile.Field) {
	for _, key := range []string{"request", "response"} {
		if f[key].IsMissing() {
			r.FailAt(yamlfile.Pos{Line: 1, Col: 1}, "uds: %s is missing (%s: 0x7E1)", key, key)
		}
	}
	tx, rx := readID(r, f["request"], "uds: request"), readID(r, f["response"], "uds: response")
	if tx == rx {
		r.Fail(f["response"], "uds: request and response are both %s", can.FormatID(tx))
	}
	c := &s.Transport
	octet := func(key string) uint8 { return uint8(r.Unsigned(f[key], "uds: "+key, 255)) }
	switch how := cmp.Or(r.Choice(f["addressing"], "uds: addressing", "normal", "extended", "mixed"), "normal"); {
	case how == "extended" && (f["target"].IsMissing() || f["source"].IsMissing()):
		r.Fail(f["addressing"], "uds: extended addressing needs the addresses of the unit and of the tester (target: 0x10, source: 0xF1)")
	case how == "mixed" && f["extension"].IsMissing():
		r.Fail(f["addressing"], "uds: mixed addressing needs an address extension (extension: 0x10)")
	case how == "extended":
		c.Address = isotp.Extended(tx, rx, octet("target"), octet("source"))
	case how == "mixed":
		c.Address = isotp.Mixed(tx, rx, octet("extension"))
	default:
		c.Address = isotp.Normal(tx, rx)
	}
	s.OBD = uds.OBDRequest
	if tx&can.EFF != 0 {
		s.OBD = uds.OBDRequest29
	}
	if g := f["functional"]; !g.IsMissing() {
		if s.OBD = readID(r, g, "uds: functional"); s.OBD != uds.OBDRequest && s.OBD != uds.OBDRequest29 {
			r.Fail(g, "uds: functional: %s is not an identifier of OBD; use 0x7DF or 0x18DB33F1", can.FormatID(s.OBD))
		}
	}
	c.FD = r.Choice(f["format"], "uds: format", "classic", "fd") == "fd"
	c.BRS = r.Choice(f["brs"], "uds: brs", "on", "off") == "on"
	c.Length = uint8(r.Integer(f["length"], "uds: length", 8, 64))
	if p := f["padding"]; !p.IsMissing() {
		if c.Pad = r.Scalar(p, "uds: padding").Text != "off"; c.Pad {
			c.PadByte = octet("padding")
		}
	}
	c.BlockSize = octet("block_size")
	if g := f["separation"]; !g.IsMissing() {
		ns := readTime(r, g, "uds: separation", 0, 127e6)
		c.STmin = isotp.SeparationCode(time.Duration(ns))
	}
	c.MaxMessage = r.Integer(f["longest"], "uds: longest", 8, 16<<20)
	c.MaxWaits = r.Integer(f["wait_frames"], "uds: wait_frames", 0, 1000)
	if _, err := isotp.NewLink(*c); err != nil {
		r.Fail(f["length"], "uds: %s", strings.TrimPrefix(err.Error(), "isotp: "))
	}
}

func (s *Spec) readTiming(r *yamlfile.Reader, f yamlfile.Field) {
	t := r.Section(f, "uds: timing", "p2", "p2_star", "margin", "s3", "limit", "n_as", "n_bs", "n_cr", "n_cs")
	for key, dst := range map[string]*int64{"p2": &s.Timing.P2, "p2_star": &s.Timing.P2Star, "margin": &s.Timing.Delta, "s3": &s.Timing.S3,
		"limit": &s.Timing.Limit, "n_as": &s.Transport.As, "n_bs": &s.Transport.Bs, "n_cr": &s.Transport.Cr, "n_cs": &s.Transport.Cs} {
		if g := t[key]; !g.IsMissing() {
			*dst = readTime(r, g, "timing: "+key, 1e6, 3600e9)
		}
	}
}

// readTime reads a time from lo to hi, ns.
func readTime(r *yamlfile.Reader, f yamlfile.Field, what string, lo, hi float64) int64 {
	v, err := units.Typed(r.Scalar(f, what).Text, "s")
	if err != nil {
		r.Fail(f, "%s: %s", what, units.Reason(err))
	} else if !(v*1e9 >= lo && v*1e9 <= hi) {
		r.Fail(f, "%s: %g s is not from %g s to %g s", what, v, lo/1e9, hi/1e9)
	}
	return int64(math.Round(v * 1e9))
}

func (s *Spec) readCode(r *yamlfile.Reader, e yamlfile.Field) {
	what := "dtc " + e.Key
	f := r.Section(e, what, "code", "text")
	c := Code{Name: e.Key, Text: r.Text(f["text"], what+": text")}
	if f["code"].IsMissing() {
		r.FailAt(e.KeyAt, "%s: the code is missing (code: 0x073000)", what)
	}
	c.Code = uint32(r.Unsigned(f["code"], what+": code", uds.AllDTCs))
	if i := slices.IndexFunc(s.Codes, func(o Code) bool { return o.Code == c.Code }); i >= 0 {
		r.Fail(f["code"], "%s: %s has the code 0x%06X, too", what, s.Codes[i].Name, c.Code)
	}
	s.Codes = append(s.Codes, c)
}

// readNamed reads "{NAME: 1, ...}" or "{NAME: {id: 1}, ...}".
func readNamed(r *yamlfile.Reader, f yamlfile.Field, what string, hi uint64) (list []Named) {
	for _, e := range r.FieldsOf(f, what) {
		name := what + ": " + e.Key
		if yamlfile.IsMapping(e.Node) {
			g := r.Section(e, name, "id")
			if g["id"].IsMissing() {
				r.FailAt(e.KeyAt, "%s: the number is missing (id: 1)", name)
			}
			e.Node, e.At = g["id"].Node, g["id"].At
		}
		list = append(list, Named{e.Key, uint16(r.Unsigned(e, name, hi))})
	}
	return list
}

func (s *Spec) readSecurity(r *yamlfile.Reader, e yamlfile.Field) {
	what := "security: " + e.Key
	level, err := strconv.ParseUint(e.Key, 0, 7)
	if err != nil || level%2 == 0 {
		r.FailAt(e.KeyAt, "%s: the level of a seed is an odd number below 0x80", what)
	}
	f := r.Section(e, what, "exec")
	exec := r.Texts(f["exec"], what+": exec")
	if len(exec) == 0 {
		r.FailAt(e.KeyAt, "%s: the program is missing (exec: [./key.py])", what)
	} else if strings.Contains(exec[0], "/") && !filepath.IsAbs(exec[0]) {
		exec[0] = "./" + filepath.Join(s.dir, exec[0])
		if filepath.IsAbs(s.dir) {
			exec[0] = strings.TrimPrefix(exec[0], "./")
		}
	}
	s.Security = append(s.Security, Security{byte(level), exec})
}

func (s *Spec) readFlash(r *yamlfile.Reader, e yamlfile.Field) {
	f := r.Section(e, "flash", "session", "unlock", "erase", "check", "reset", "data_format", "address_bytes", "size_bytes")
	named := func(key string, list []Named) byte {
		if f[key].IsMissing() {
			return 0
		}
		n, err := find(list, r.Scalar(f[key], "flash: "+key).Text, key)
		if err == nil && n > 0x7F {
			err = fmt.Errorf("%s 0x%X is not from 0 to 0x7F", key, n)
		}
		if err != nil {
			r.Fail(f[key], "flash: %v", err)
		}
		return byte(n)
	}
	s.Flash = Flash{
		Session: named("session", s.Sessions), Reset: named("reset", standardResets),
		Unlock: byte(r.Unsigned(f["unlock"], "flash: unlock", 0x7D)),
		Download: uds.Download{Format: byte(r.Unsigned(f["data_format"], "flash: data_format", 255)),
			AddressBytes: r.Integer(f["address_bytes"], "flash: address_bytes", 1, 8), SizeBytes: r.Integer(f["size_bytes"], "flash: size_bytes", 1, 8)},
	}
	for key, dst := range map[string]*string{"erase": &s.Flash.Erase, "check": &s.Flash.Check} {
		if f[key].IsMissing() {
			continue
		}
		if *dst = r.Scalar(f[key], "flash: "+key).Text; s.routineError(*dst) != nil {
			r.Fail(f[key], "flash: %v", s.routineError(*dst))
		}
	}
}

func (s *Spec) routineError(name string) error {
	_, err := find(s.Routines, name, "routine")
	return err
}

// find returns the number of a name of a list, or of a text like 0x1001.
func find(list []Named, text, what string) (uint16, error) {
	var names []string
	for _, n := range list {
		if names = append(names, n.Name); n.Name == text {
			return n.ID, nil
		}
	}
	if n, err := strconv.ParseUint(text, 0, 16); err == nil {
		return uint16(n), nil
	}
	return 0, fmt.Errorf("there is no %s %.60q%s; use a number or one of: %s", what, text, units.Meant(text, names), strings.Join(names, ", "))
}

// FindCode returns the trouble code of a name, of the name of SAE J2012 (P0730, P0730-1A) or of a number.
func (s *Spec) FindCode(text string) (uint32, error) {
	var names []string
	for _, c := range s.Codes {
		if names = append(names, c.Name); c.Name == text {
			return c.Code, nil
		}
	}
	if s.Node != nil {
		if n, ok := parseSPN(text); ok {
			return n, nil
		}
		return 0, fmt.Errorf("there is no trouble code %.60q%s in %s; use SPN/FMI like 191/2, or one of: %s", text, units.Meant(text, names), s.File, strings.Join(names, ", "))
	}
	if n, err := strconv.ParseUint(text, 0, 24); err == nil && strings.HasPrefix(text, "0x") {
		return uint32(n), nil
	}
	if n, ok := uds.ParseDTC(text); ok {
		return n, nil
	}
	return 0, fmt.Errorf("there is no trouble code %.60q%s in %s; use a code like P0730 or P0730-1A, 0x and six digits, or one of: %s", text, units.Meant(text, names), s.File, strings.Join(names, ", "))
}

// NameCode returns the name of a trouble code with its text: "P0730 incorrect gear ratio".
func (s *Spec) NameCode(code uint32) string {
	i := slices.IndexFunc(s.Codes, func(c Code) bool { return c.Code == code })
	switch {
	case i < 0 && s.Node != nil:
		return formatCode(code)
	case i < 0:
		return uds.FormatDTC(code)
	}
	return strings.TrimSpace(s.Codes[i].Name + " " + s.Codes[i].Text)
}

// Filters returns filters that pass the answers of the unit, and those to OBD requests.
func (s *Spec) Filters() []can.Filter {
	if s.Node != nil {
		return s.Node.filters()
	}
	list := []can.Filter{{ID: s.Transport.Rx.ID, Mask: can.EFF | can.RTR | can.MaskEFF}}
	if s.OBD == uds.OBDRequest {
		return append(list, can.Filter{ID: 0x7E8, Mask: can.EFF | can.RTR | 0x7F8})
	}
	return append(list, can.Filter{ID: 0x18DAF100 | can.EFF, Mask: can.EFF | can.RTR | 0x1FFFFF00})
}

// Describe formats the file for people: how the unit is reached, its names, and what is ignored.
func (s *Spec) Describe() string {
	out := &strings.Builder{}
	if n := s.Node; n != nil {
		fmt.Fprintf(out, "%s: diagnosis on SAE J1939, unit 0x%02X, tester 0x%02X\n", s.File, n.Address, n.Tester)
		for _, c := range s.Codes {
			fmt.Fprintf(out, "  code      %s: %s\n", formatCode(c.Code), s.NameCode(c.Code))
		}
		return out.String()
	}
	fmt.Fprintf(out, "%s: diagnosis, requests at %s, answers at %s, OBD at %s\n", s.File, can.FormatID(s.Transport.Tx.ID), can.FormatID(s.Transport.Rx.ID), can.FormatID(s.OBD))
	for _, c := range s.Codes {
		fmt.Fprintf(out, "  code      0x%06X %s\n", c.Code, s.NameCode(c.Code))
	}
	for _, v := range s.Values {
		fmt.Fprintf(out, "  data      0x%04X %s, %s%s\n", v.ID, v.Name, v.Type, map[bool]string{true: ", in " + v.Unit}[v.Unit != "1"])
	}
	for _, n := range s.Routines {
		fmt.Fprintf(out, "  routine   0x%04X %s\n", n.ID, n.Name)
	}
	for _, text := range s.Ignored {
		fmt.Fprintf(out, "  ignored   %s\n", text)
	}
	return out.String()
}
