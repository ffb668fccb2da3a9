package diagnosis

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lockstep/io/can"
	"lockstep/io/j1939"
	"lockstep/io/uds"
	"lockstep/io/yamlfile"
)

// Node is a unit on SAE J1939, as the section j1939 of a diagnosis file describes it.
type Node struct {
	Address uint8 // of the unit
	Tester  uint8 // of the tester
}

// GroupRequest is a request for a parameter group.
type GroupRequest struct {
	PGN    uint32
	Clears bool                                // the answer is an acknowledgement
	Lines  func(data []byte) ([]string, error) // the answer for people
}

// offBoardTool is the address of the first off-board diagnostic tool: SAE J1939, appendix B, table 2.
const offBoardTool = 0xF9

// readNode reads the section j1939: the addresses, and codes by name.
func (s *Spec) readNode(r *yamlfile.Reader, e yamlfile.Field) {
	f := r.Section(e, "j1939", "address", "tester", "codes")
	if f["address"].IsMissing() {
		r.FailAt(e.KeyAt, "j1939: the address of the unit is missing (address: 0x03)")
	}
	s.Node = &Node{Address: uint8(r.Unsigned(f["address"], "j1939: address", 253)), Tester: offBoardTool}
	if !f["tester"].IsMissing() {
		s.Node.Tester = uint8(r.Unsigned(f["tester"], "j1939: tester", 253))
	}
	if s.Node.Tester == s.Node.Address {
		r.Fail(f["address"], "j1939: unit and tester both have the address 0x%02X", s.Node.Tester)
	}
	for _, c := range r.FieldsOf(f["codes"], "codes") {
		what := "code " + c.Key
		g := r.Section(c, what, "spn", "fmi", "text")
		for _, key := range []string{"spn", "fmi"} {
			if g[key].IsMissing() {
				r.FailAt(c.KeyAt, "%s: %s is missing (spn: 191, fmi: 2)", what, key)
			}
		}
		code := codeOf(uint32(r.Unsigned(g["spn"], what+": spn", 1<<19-1)), uint8(r.Unsigned(g["fmi"], what+": fmi", 31)))
		if i := slices.IndexFunc(s.Codes, func(o Code) bool { return o.Code == code }); i >= 0 {
			r.Fail(g["spn"], "%s: %s has the same SPN and FMI", what, s.Codes[i].Name)
		}
		s.Codes = append(s.Codes, Code{Name: c.Key, Text: r.Text(g["text"], what+": text"), Code: code})
	}
}

// codeOf returns a code of SAE J1939 as a number of 24 bits.
func codeOf(spn uint32, fmi uint8) uint32 { return spn<<5 | uint32(fmi) }

// formatCode returns "SPN 191 FMI 2".
func formatCode(code uint32) string { return fmt.Sprintf("SPN %d FMI %d", code>>5, code&31) }

// parseSPN returns the code of a text like 191/2.
func parseSPN(text string) (uint32, bool) {
	spn, fmi, ok := strings.Cut(text, "/")
	n, err := strconv.ParseUint(spn, 10, 19)
	m, err2 := strconv.ParseUint(fmi, 10, 5)
	return codeOf(uint32(n), uint8(m)), ok && err == nil && err2 == nil
}

// groups are the diagnostic messages by their numbers.
var groups = map[string]GroupRequest{
	"1": {PGN: j1939.PGNDM1}, "2": {PGN: j1939.PGNDM2}, "3": {PGN: j1939.PGNDM3, Clears: true},
	"4": {PGN: j1939.PGNDM4}, "11": {PGN: j1939.PGNDM11, Clears: true},
}

func parseDM(s *Spec, args []string, _ bool) (Job, error) {
	if len(args) != 1 {
		return Job{}, errors.New("expected dm 1|2|3|4|11")
	}
	g, ok := groups[args[0]]
	switch {
	case !ok:
		return Job{}, fmt.Errorf("%.60q is not one of 1, 2, 3, 4, 11", args[0])
	case g.Clears:
		g.Lines = func([]byte) ([]string, error) { return []string{"cleared"}, nil }
	case g.PGN == j1939.PGNDM4:
		g.Lines = s.describeFrames
	default:
		g.Lines = s.describeCodes
	}
	return Job{Group: &g}, nil
}

// describeCodes returns DM1 or DM2 for people: the lamps that are on, and a line for each code.
func (s *Spec) describeCodes(data []byte) ([]string, error) {
	d, err := j1939.ParseTroubleCodes(data)
	if err != nil {
		return nil, err
	}
	lines := d.Lamps()
	for _, c := range d.Codes {
		lines = append(lines, s.describeTrouble(c))
	}
	if len(d.Codes) == 0 {
		lines = append(lines, "no trouble codes")
	}
	return lines, nil
}

// describeTrouble returns a code with its name and text: "output: SPN 191 FMI 2, 3 times (output shaft speed)".
func (s *Spec) describeTrouble(c j1939.TroubleCode) string {
	i := slices.IndexFunc(s.Codes, func(o Code) bool { return o.Code == codeOf(c.SPN, c.FMI) })
	if i < 0 {
		return c.String()
	}
	text := s.Codes[i].Name + ": " + c.String()
	if s.Codes[i].Text != "" {
		text += " (" + s.Codes[i].Text + ")"
	}
	return text
}

// describeFrames returns DM4 for people.
func (s *Spec) describeFrames(data []byte) (lines []string, err error) {
	list, err := j1939.ParseFreezeFrames(data)
	for _, f := range list {
		lines = append(lines, fmt.Sprintf("%s: freeze frame %s", s.describeTrouble(f.Code), uds.Bytes(f.Data)))
	}
	if lines == nil && err == nil {
		lines = []string{"no freeze frames"}
	}
	return lines, err
}

// filters returns filters that pass the answers of the unit: trouble codes, freeze frames, acknowledgements and packets;
// and address claims with the requests for them.
func (n *Node) filters() []can.Filter {
	list := j1939.Filters(j1939.PGNClaim, j1939.PGNRequest)
	const flags, format = can.EFF | can.RTR, 0x3FF0000 // page and PDU format
	for _, pgn := range []uint32{j1939.PGNAck, j1939.PGNConnection, j1939.PGNPacket, j1939.PGNDM1, j1939.PGNDM2, j1939.PGNDM4} {
		f := can.Filter{ID: can.EFF | pgn<<8 | uint32(n.Address), Mask: flags | format | 0xFF}
		if !j1939.Directed(pgn) {
			f.Mask |= 0xFF00
		}
		list = append(list, f)
	}
	return list
}

// Statuses of a code on SAE J1939, as scenarios name them.
var nodeStatuses = []string{"active", "previously_active"}

// StatusNames returns the names of the statuses of a code of the unit.
func (s *Spec) StatusNames() []string {
	if s.Node != nil {
		return nodeStatuses
	}
	return uds.StatusNames[:]
}

// ParseStatus returns the status of a name of StatusNames; "": that of a code which is stored. On SAE J1939 active is
// uds.TestFailed, and previously active is uds.Confirmed.
func (s *Spec) ParseStatus(name string) (uds.Status, bool) {
	switch {
	case s.Node == nil && name == "":
		return uds.Confirmed, true
	case s.Node == nil:
		return uds.ParseStatus(name)
	case name == "" || name == "active":
		return uds.TestFailed, true
	}
	return uds.Confirmed, name == "previously_active"
}

// FormatStatus returns the names of the bits of a status.
func (s *Spec) FormatStatus(status uds.Status) string {
	if s.Node != nil {
		return nodeStatuses[map[uds.Status]int{uds.Confirmed: 1}[status]]
	}
	return status.String()
}

// ReadCodes returns the job that reads the codes with one of the bits of a status. On SAE J1939 they are the active
// codes, or for uds.Confirmed alone the previously active ones.
func (s *Spec) ReadCodes(mask uds.Status) Job {
	if s.Node == nil {
		return Job{Label: "dtc " + mask.String(), Do: func(t *uds.Tester) ([]string, error) {
			list, err := t.DTCs(mask)
			return []string{fmt.Sprintf("%d trouble codes", len(list))}, err
		}}
	}
	number := "1"
	if mask == uds.Confirmed {
		number = "2"
	}
	j, _ := parseDM(s, []string{number}, false)
	j.Label = "dm " + number
	return j
}

// ParseCodes returns the codes in an answer to ReadCodes, each with its status.
func (s *Spec) ParseCodes(mask uds.Status, answer []byte) (list []uds.DTC, err error) {
	if s.Node == nil {
		return uds.ParseDTCs(answer)
	}
	d, err := j1939.ParseTroubleCodes(answer)
	for _, c := range d.Codes {
		status := uds.TestFailed
		if mask == uds.Confirmed {
			status = uds.Confirmed
		}
		list = append(list, uds.DTC{Code: codeOf(c.SPN, c.FMI), Status: status})
	}
	return list, err
}
