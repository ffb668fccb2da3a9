package uds

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"lockstep/io/can"
	"lockstep/io/isotp"
)

// Functional identifiers of OBD requests: ISO 15765-4.
const (
	OBDRequest     = 0x7DF
	OBDRequest29   = 0x18DB33F1 | can.EFF
	firstOBD       = 0x7E8 // of the answers to 0x7DF; the flow control goes to the identifier 8 below
	lastOBD        = 0x7EF
	maskOBD29      = 0x1FFFFF00 | can.EFF
	answersOBD29   = 0x18DAF100 | can.EFF // the low byte is the address of the unit
	obdTester      = 0xF1
	maxGroupUnits  = 32
	maxGroupAnswer = 64 // answers of one unit to one request
)

// Group is a tester's side of a request to all units at a functional identifier, and of their answers at their
// physical ones: that of OBD. A request fits a single frame. Use NewGroup.
type Group struct {
	timing     Timing
	template   isotp.Config
	functional uint32 // identifier of the requests
	link       *isotp.Link
	units      []*groupUnit

	open     bool
	over     bool // the time for first answers is over
	request  []byte
	start    int64
	deadline int64 // of the first answers, ns; isotp.Never while the request is being sent, and when over
}

// groupUnit is a unit that has answered.
type groupUnit struct {
	id       uint32 // of its answers
	link     *isotp.Link
	deadline int64 // of its answer after "response pending", ns; 0: none is due
	answers  []UnitAnswer
}

// UnitAnswer is the answer of one unit.
type UnitAnswer struct {
	ID   uint32 // identifier of the answer
	Data []byte
	Err  error
	At   int64 // ns
}

// NewGroup returns a Group that requests at OBDRequest or OBDRequest29. The transport needs no address.
func NewGroup(request uint32, transport isotp.Config, timing Timing) (*Group, error) {
	if request != OBDRequest && request != OBDRequest29 {
		return nil, fmt.Errorf("uds: %s is not a functional identifier of OBD; use 0x7DF or 0x18DB33F1", can.FormatID(request))
	}
	timing.setDefaults()
	functional := transport
	functional.Address, functional.Functional = isotp.Normal(request, can.ERR), true
	l, err := isotp.NewLink(functional)
	return &Group{timing: timing, template: transport, functional: request, link: l, deadline: isotp.Never}, err
}

// Request begins a request to all units; Done reports its end.
func (g *Group) Request(data []byte, now int64) error {
	if g.open {
		return fmt.Errorf("uds: the request before is still open")
	}
	if err := g.link.Send(data, now); err != nil {
		return err
	}
	g.open, g.over, g.request, g.start, g.deadline, g.units = true, false, slices.Clone(data), now, isotp.Never, nil
	return nil
}

// respond returns the identifier of the flow control for an answer; false: the identifier is not that of an answer.
func (g *Group) respond(id uint32) (uint32, bool) {
	if g.functional == OBDRequest {
		return id - 8, id >= firstOBD && id <= lastOBD
	}
	return fixed(uint8(id)), id&maskOBD29 == answersOBD29
}

func fixed(unit uint8) uint32 { return isotp.NormalFixed(unit, obdTester).Tx.ID }

// Receive processes a frame of the bus at an instant, ns; false: it is no answer.
func (g *Group) Receive(f *can.Frame, now int64) bool {
	flow, ok := g.respond(f.ID)
	if !ok || !g.open {
		return false
	}
	i := slices.IndexFunc(g.units, func(u *groupUnit) bool { return u.id == f.ID })
	if i < 0 {
		if len(g.units) == maxGroupUnits {
			return false
		}
		c := g.template
		c.Address = isotp.Normal(flow, f.ID)
		l, err := isotp.NewLink(c)
		if err != nil {
			return false
		}
		i, g.units = len(g.units), append(g.units, &groupUnit{id: f.ID, link: l})
	}
	g.units[i].link.Receive(f, now)
	g.collect(now)
	return true
}

// Next returns the frame that is to be sent now: isotp.Link.Next.
func (g *Group) Next(now int64) (can.Frame, bool) {
	if f, ok := g.link.Next(now); ok {
		return f, true
	}
	for _, u := range g.units {
		if f, ok := u.link.Next(now); ok {
			return f, true
		}
	}
	return can.Frame{}, false
}

// Sent confirms that the bus has taken the frame of Next.
func (g *Group) Sent(now int64) {
	if _, ok := g.link.Next(now); ok {
		g.link.Sent(now)
	} else if i := slices.IndexFunc(g.units, func(u *groupUnit) bool { _, ok := u.link.Next(now); return ok }); i >= 0 {
		g.units[i].link.Sent(now)
	}
	g.collect(now)
}

// Deadline returns the instant, ns, at which Poll or Next has work; isotp.Never: none.
func (g *Group) Deadline() int64 {
	if !g.open {
		return isotp.Never
	}
	next := min(g.link.Deadline(), g.deadline, g.start+g.timing.Limit)
	for _, u := range g.units {
		if next = min(next, u.link.Deadline()); u.deadline > 0 {
			next = min(next, u.deadline)
		}
	}
	return next
}

// Poll serves the times of the group.
func (g *Group) Poll(now int64) {
	g.link.Poll(now)
	for _, u := range g.units {
		u.link.Poll(now)
		if u.deadline > 0 && now >= u.deadline {
			u.end(nil, fmt.Errorf("%w within %d ms after response pending", ErrSilent, (g.timing.P2Star+g.timing.Delta)/1e6), now)
		}
	}
	g.collect(now)
	if now >= g.deadline {
		g.over, g.deadline = true, isotp.Never
	}
}

// collect processes the events of the links.
func (g *Group) collect(now int64) {
	for _, e := range g.link.Take() {
		g.deadline = e.At + g.timing.P2 + g.timing.Delta
		if e.Kind == isotp.SendFailed {
			g.units = append(g.units, &groupUnit{answers: []UnitAnswer{{Err: fmt.Errorf("the request was not sent: %v", e.Result), At: e.At}}})
			g.deadline = e.At
		}
	}
	for _, u := range g.units {
		if u.link == nil {
			continue
		}
		for _, e := range u.link.Take() {
			switch {
			case e.Kind == isotp.ReceiveFailed && e.Result != isotp.Unexpected:
				u.end(nil, fmt.Errorf("the answer was not complete: %v", e.Result), e.At)
			case e.Kind == isotp.Received:
				g.receive(u, e.Data, e.At)
			}
		}
	}
}

// receive processes an answer of a unit.
func (g *Group) receive(u *groupUnit, data []byte, now int64) {
	switch {
	case data[0] != negative:
		u.end(data, checkAnswer(g.request, data), now)
	case len(data) != 3 || data[1] != g.request[0]:
		u.end(data, errWrong(g.request, data, "it is no negative response to this request"), now)
	case data[2] == pendingAnswer:
		u.deadline = now + g.timing.P2Star + g.timing.Delta
	default:
		u.end(data, &Negative{data[1], data[2]}, now)
	}
}

func (u *groupUnit) end(data []byte, err error, now int64) {
	u.deadline = 0
	if len(u.answers) < maxGroupAnswer {
		u.answers = append(u.answers, UnitAnswer{u.id, data, err, now})
	}
}

// Done reports whether the time for answers is over and no answer is incomplete, and returns the answers by
// identifier.
func (g *Group) Done(now int64) ([]UnitAnswer, bool) {
	if g.Poll(now); !g.open || !g.over && now < g.start+g.timing.Limit {
		return nil, false
	}
	var list []UnitAnswer
	for _, u := range g.units {
		if (u.deadline > 0 || u.link != nil && u.link.Receiving()) && now < g.start+g.timing.Limit {
			return nil, false
		}
		list = append(list, u.answers...)
	}
	g.open = false
	slices.SortStableFunc(list, func(a, b UnitAnswer) int { return int(int64(a.ID) - int64(b.ID)) })
	return list, true
}

// Modes of OBD: SAE J1979.
const (
	OBDCurrent   = 0x01 // current data of a parameter
	OBDFreeze    = 0x02 // freeze frame of a parameter
	OBDStored    = 0x03 // stored trouble codes
	OBDClear     = 0x04 // clears codes and freeze frames
	OBDPending   = 0x07 // pending trouble codes
	OBDVehicle   = 0x09 // information about the vehicle
	OBDPermanent = 0x0A // permanent trouble codes
)

// parameter is a parameter of modes 1 and 2: value = factor·raw + offset, of the first bytes.
type parameter struct {
	name, unit     string
	bytes          int
	factor, offset float64
}

// parameters are those of SAE J1979 that a powertrain bench needs, by number.
var parameters = map[byte]parameter{
	0x04: {"engine load", "%", 1, 100.0 / 255, 0},
	0x05: {"coolant temperature", "degC", 1, 1, -40},
	0x0A: {"fuel pressure", "kPa", 1, 3, 0},
	0x0B: {"intake manifold pressure", "kPa", 1, 1, 0},
	0x0C: {"engine speed", "rpm", 2, 0.25, 0},
	0x0D: {"vehicle speed", "km/h", 1, 1, 0},
	0x0F: {"intake air temperature", "degC", 1, 1, -40},
	0x10: {"mass air flow", "g/s", 2, 0.01, 0},
	0x11: {"throttle position", "%", 1, 100.0 / 255, 0},
	0x1F: {"time since engine start", "s", 2, 1, 0},
	0x21: {"distance with warning lamp on", "km", 2, 1, 0},
	0x2F: {"fuel level", "%", 1, 100.0 / 255, 0},
	0x31: {"distance since codes cleared", "km", 2, 1, 0},
	0x33: {"barometric pressure", "kPa", 1, 1, 0},
	0x42: {"control module voltage", "V", 2, 0.001, 0},
	0x46: {"ambient air temperature", "degC", 1, 1, -40},
	0x5C: {"oil temperature", "degC", 1, 1, -40},
	0x61: {"demanded engine torque", "%", 1, 1, -125},
	0x62: {"actual engine torque", "%", 1, 1, -125},
	0x63: {"reference engine torque", "N.m", 2, 1, 0},
}

// DescribeOBD returns an answer in words; an unknown parameter keeps its bytes.
func DescribeOBD(a []byte) (string, error) {
	if len(a) == 0 || a[0]&positive == 0 {
		return "", fmt.Errorf("answer %s is not one of OBD", Bytes(a))
	}
	switch mode := a[0] &^ positive; mode {
	case OBDCurrent, OBDFreeze:
		return describeParameter(a, int(mode))
	case OBDStored, OBDPending, OBDPermanent:
		return describeOBDCodes(a)
	case OBDClear:
		return "cleared", nil
	case OBDVehicle:
		if len(a) > 3 && (a[1] == 2 || a[1] == 4 || a[1] == 0x0A) {
			text := strings.Map(func(r rune) rune {
				if r < ' ' || r > '~' {
					return -1
				}
				return r
			}, string(a[3:]))
			return map[byte]string{2: "VIN ", 4: "calibration ", 0x0A: "name "}[a[1]] + text, nil
		}
	}
	return Bytes(a), nil
}

// describeParameter returns an answer to mode 1 or 2; in mode 2 a frame number follows the parameter.
func describeParameter(a []byte, mode int) (string, error) {
	from := 1 + mode
	if len(a) <= from {
		return "", fmt.Errorf("answer %s has %d bytes, want at least %d", Bytes(a), len(a), from+1)
	}
	pid, data := a[1], a[from:]
	switch p, known := parameters[pid]; {
	case pid%0x20 == 0 && len(data) >= 4:
		var list []string
		for i := range 32 {
			if binary.BigEndian.Uint32(data)>>(31-i)&1 == 1 {
				list = append(list, fmt.Sprintf("%02X", int(pid)+1+i))
			}
		}
		return "supports " + strings.Join(list, " "), nil
	case pid == 1 && len(data) >= 4:
		return fmt.Sprintf("warning lamp %s, %d stored codes", [2]string{"off", "on"}[data[0]>>7], data[0]&0x7F), nil
	case pid == 2 && len(data) >= 2:
		return "freeze frame of " + FormatDTC(uint32(data[0])<<16|uint32(data[1])<<8), nil
	case !known:
		return Bytes(a), nil
	case len(data) < p.bytes:
		return "", fmt.Errorf("answer %s has %d bytes of %s, want %d", Bytes(a), len(data), p.name, p.bytes)
	default:
		raw := 0
		for _, b := range data[:p.bytes] {
			raw = raw<<8 | int(b)
		}
		return fmt.Sprintf("%s %.4g %s", p.name, float64(p.factor*float64(raw))+p.offset, p.unit), nil
	}
}

// OBDCodes returns the trouble codes of an answer to modes 3, 7 and 0A, as 24-bit codes.
func OBDCodes(a []byte) ([]uint32, error) {
	if len(a) < 2 || len(a) != 2+2*int(a[1]) {
		return nil, fmt.Errorf("answer %s has %d bytes, want 2 and 2 for each trouble code", Bytes(a), len(a))
	}
	var list []uint32
	for b := a[2:]; len(b) > 0; b = b[2:] {
		list = append(list, uint32(b[0])<<16|uint32(b[1])<<8)
	}
	return list, nil
}

func describeOBDCodes(a []byte) (string, error) {
	codes, err := OBDCodes(a)
	if err != nil || len(codes) == 0 {
		return "no codes", err
	}
	var list []string
	for _, c := range codes {
		list = append(list, FormatDTC(c))
	}
	return strings.Join(list, " "), nil
}
