package dbc

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"lockstep/io/can"
	"lockstep/io/messages"
)

// attributes holds the attributes of a file until its end.
type attributes struct {
	defined map[string]*definition
	given   map[object]value
}

// definition is what a file says about an attribute.
type definition struct {
	isEnum   bool
	choices  []string // of an enumeration
	fallback value    // for objects without a value of their own
}

// object is an attribute of a message, of a signal, or (with message -1) of the
// bus.
type object struct {
	attribute string
	place
}

// value is an attribute's value as it is in the file.
type value struct {
	token
	set bool
}

// The place of attributes of the bus.
var bus = place{message: -1}

// The frame formats by Vector's numbers, for files that define them as numbers.
var formats = map[string]string{"0": "StandardCAN", "1": "ExtendedCAN", "3": "J1939PG", "14": "StandardCAN_FD", "15": "ExtendedCAN_FD"}

func newAttributes() attributes {
	return attributes{map[string]*definition{}, map[object]value{}}
}

// define reads BA_DEF_ object "name" type range; or ENUM "text","text",...;
func (p *parser) define() {
	switch p.tok.text {
	case "BU_", "BO_", "SG_", "EV_":
		if p.tok.kind == name {
			p.advance()
		}
	}
	attribute := p.take(text, "the attribute's name between quotes").text
	d := &definition{}
	kind := p.take(name, "INT, HEX, FLOAT, STRING or ENUM")
	switch kind.text {
	case "INT", "HEX", "FLOAT":
		for p.tok.kind == number {
			p.advance()
		}
	case "STRING":
	case "ENUM":
		d.isEnum = true
		for p.tok.kind == text {
			d.choices = append(d.choices, p.tok.text)
			p.advance()
			p.accept(",")
		}
	default:
		p.fail(kind, "INT, HEX, FLOAT, STRING or ENUM")
	}
	p.semicolon()
	if p.bad == nil {
		p.defined[attribute] = d
	}
}

// preset reads BA_DEF_DEF_ "name" value;
func (p *parser) preset() {
	at, v := p.attribute(func() {})
	if d := p.defined[at.text]; p.bad == nil && d != nil {
		d.fallback = v
	}
}

// set reads BA_ "name" object value;
func (p *parser) set() {
	where, known := bus, true
	at, v := p.attribute(func() {
		word := p.tok
		switch {
		case word.kind != name:
		case word.text == "BO_":
			p.advance()
			where = place{message: p.theMessage()}
			known = where.message >= 0
		case word.text == "SG_":
			var i int
			p.advance()
			where, i = p.theSignal()
			known = i >= 0
		case word.text == "BU_" || word.text == "EV_":
			p.advance()
			p.identifier("a name")
			known = false
		}
	})
	if p.bad == nil && known {
		p.given[object{at.text, where}] = v
	}
}

// attribute reads the name of an attribute, what of, and its value.
func (p *parser) attribute(of func()) (at token, v value) {
	at = p.take(text, "the attribute's name between quotes")
	if p.bad == nil && p.defined[at.text] == nil {
		p.forgive(at, fmt.Sprintf("attribute %s is not defined (BA_DEF_)", at.spell()), "taken as it is")
	}
	of()
	v = value{p.tok, true}
	if v.kind != text && v.kind != number {
		p.fail(v.token, "the attribute's value")
	}
	p.advance()
	p.semicolon()
	return at, v
}

// find returns the value of an attribute, the one of an enumeration as its text.
// It is not set if the file gives neither a value nor one for all.
func (p *parser) find(attribute string, where place) value {
	d, v := p.defined[attribute], p.given[object{attribute, where}]
	if d != nil && !v.set {
		v = d.fallback
	}
	if d != nil && d.isEnum && v.kind == number {
		if i, err := strconv.Atoi(v.text); err == nil && 0 <= i && i < len(d.choices) {
			v.text, v.kind = d.choices[i], text
		}
	}
	return v
}

// count returns the value of an attribute that is a number from 0 to most, 0 if
// it is not given.
func (p *parser) count(attribute string, where place, most float64) float64 {
	v := p.find(attribute, where)
	if !v.set || v.text == "" {
		return 0
	}
	f, err := strconv.ParseFloat(v.text, 64)
	if err != nil || !(0 <= f && f <= most) {
		p.forgive(v.token, fmt.Sprintf("%s for the attribute %q, a number from 0 to %g", v.spell(), attribute, most), leftOut)
		return 0
	}
	return f
}

// apply gives messages and signals what the file says in attributes.
func (p *parser) apply() {
	p.db.BusType = p.find("BusType", bus).text
	protocol := p.find("ProtocolType", bus).text
	for i := range p.db.Messages {
		m, of := &p.db.Messages[i], place{message: i}
		p.timing(m, of)
		format := p.find("VFrameFormat", of)
		if format.kind == number {
			format.text = formats[format.text]
		}
		own := p.given[object{"VFrameFormat", of}].set
		m.FD = m.Len > 8 || format.text == fd(m.ID) || own && strings.HasSuffix(format.text, "_FD")
		m.BRS = m.FD && p.find("CANFD_BRS", of).text == "1"
		m.J1939 = m.ID > can.MaskSFF && (format.text == "J1939PG" || !own && protocol == "J1939")
		if m.J1939 {
			m.FD, m.BRS = false, false
		}
		for j := range m.Signals {
			p.ofSignal(&m.Signals[j], i)
		}
	}
	p.longNames()
}

// fd is the format of CAN FD frames with this kind of identifier. A format for all
// messages may be the wrong one.
func fd(id uint32) string {
	if id > can.MaskSFF {
		return "ExtendedCAN_FD"
	}
	return "StandardCAN_FD"
}

// timing is apply for when a message is sent.
func (p *parser) timing(m *messages.Message, of place) {
	const most = 1e9 // ms, 11 days
	ns := func(attribute string) int64 { return int64(math.Round(p.count(attribute, of, most) * 1e6)) }
	m.CycleNs = ns("GenMsgCycleTime")
	m.FastNs = ns("GenMsgCycleTimeFast")
	m.DelayNs = ns("GenMsgDelayTime")
	m.StartDelayNs = ns("GenMsgStartDelayTime")
	m.Repeats = int(p.count("GenMsgNrOfRepetition", of, 1e6))
	m.SendType = p.find("GenMsgSendType", of).text
}

// ofSignal is apply for a signal of a message.
func (p *parser) ofSignal(s *messages.Signal, message int) {
	of := place{message, s.Name}
	s.SPN = int(p.count("SPN", of, 1<<19-1))
	v := p.find("GenSigStartValue", of)
	if !v.set || v.text == "" {
		return
	}
	f, err := strconv.ParseFloat(v.text, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		p.forgive(v.token, fmt.Sprintf("%s for the attribute %q, a number", v.spell(), "GenSigStartValue"), leftOut)
		return
	}
	s.Initial, s.HasInitial = f, true
}

// longNames gives messages and signals the names that were too long for their
// statements.
func (p *parser) longNames() {
	for i := range p.db.Messages {
		m := &p.db.Messages[i]
		if v := p.find("SystemMessageLongSymbol", place{message: i}); v.text != "" {
			m.Name = v.text
		}
		long := map[string]string{}
		for j := range m.Signals {
			s := &m.Signals[j]
			if v := p.find("SystemSignalLongSymbol", place{i, s.Name}); v.text != "" {
				long[s.Name] = v.text
			}
		}
		for j := range m.Signals {
			s := &m.Signals[j]
			if name := long[s.Name]; name != "" {
				s.Name = name
			}
			if name := long[s.Under]; name != "" {
				s.Under = name
			}
		}
	}
}
