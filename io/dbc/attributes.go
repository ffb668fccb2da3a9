package dbc

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"lockstep/io/can"
)

// attributes holds the attributes of a file until all statements are read.
type attributes struct {
	definitions map[string]*definition
	values      map[attributeKey]token // values given in the file
}

// definition is the definition of an attribute.
type definition struct {
	choices      []string // texts of an enumeration
	defaultValue token    // value of objects for which the file gives none
}

// attributeKey is an attribute of a message, of a signal, of a node (nodeObject) or, with busObject, of
// the bus.
type attributeKey struct {
	attribute string
	signalKey
}

// busObject is the object of attributes of the bus.
var busObject = signalKey{message: -2}

// nodeObject returns the object of attributes of a node.
func nodeObject(name string) signalKey { return signalKey{-3, name} }

// formats maps Vector's numbers of frame formats to their names, for files that define numbers.
var formats = map[string]string{
	"0": "StandardCAN", "1": "ExtendedCAN", "3": "J1939PG", "14": "StandardCAN_FD", "15": "ExtendedCAN_FD",
}

// parseDefinition reads BA_DEF_ object "name" type range; or ENUM "text","text",...;
func (p *parser) parseDefinition() {
	if object := p.tok; object.kind == name && slices.Contains([]string{"BU_", "BO_", "SG_", "EV_"}, object.text) {
		p.advance()
	}

	attribute := p.expectKind(text, "the attribute's name between quotes").text
	d := &definition{}
	kind := p.expectKind(name, "INT, HEX, FLOAT, STRING or ENUM")
	switch kind.text {
	case "INT", "HEX", "FLOAT":
		for p.tok.kind == number {
			p.advance()
		}
	case "STRING":
	case "ENUM":
		for p.tok.kind == text {
			d.choices = append(d.choices, p.tok.text)
			p.advance()
			p.accept(",")
		}
	default:
		p.fail(kind, "INT, HEX, FLOAT, STRING or ENUM")
	}

	p.expectSemicolon()
	if before := p.definitions[attribute]; before != nil { // its default stood first
		d.defaultValue = before.defaultValue
	}
	p.definitions[attribute] = d
}

// parseDefault reads BA_DEF_DEF_ "name" value;
func (p *parser) parseDefault() {
	at, v := p.attributeLine(func() {})
	d := p.definitions[at.text]
	if d == nil {
		d = &definition{}
		p.definitions[at.text] = d
	}
	d.defaultValue = v
}

// parseAttribute reads BA_ "name" object value;
func (p *parser) parseAttribute() {
	where := busObject
	at, v := p.attributeLine(func() {
		word := p.tok
		switch {
		case word.kind != name:
		case word.text == "BO_":
			p.advance()
			where = signalKey{message: p.messageIndex()}
		case word.text == "SG_":
			p.advance()
			where, _ = p.signalIndex()
		case word.text == "BU_":
			p.advance()
			where = nodeObject(p.identifier("a node"))
		case word.text == "EV_":
			p.advance()
			p.identifier("a name")
			where = unknownSignal
		}
	})
	p.values[attributeKey{at.text, where}] = v
}

// attributeLine reads name, object and value of an attribute; of reads the object.
func (p *parser) attributeLine(of func()) (at, v token) {
	at = p.expectKind(text, "the attribute's name between quotes")
	if p.definitions[at.text] == nil {
		p.tolerate(at, fmt.Sprintf("attribute %s is not defined (BA_DEF_)", at.format()), "taken as it is")
	}
	of()
	v = p.tok
	if v.kind != text && v.kind != number {
		p.fail(v, "the attribute's value")
	}
	p.advance()
	p.expectSemicolon()
	return at, v
}

// attributeValue returns the value of an attribute, of an enumeration its text. The kind of the
// token is end if the file gives neither a value nor a default.
func (p *parser) attributeValue(attribute string, where signalKey) token {
	v, given := p.values[attributeKey{attribute, where}]
	d := p.definitions[attribute]
	if d == nil {
		return v
	}
	if !given {
		v = d.defaultValue
	}
	if v.kind == number {
		if i, err := strconv.Atoi(v.text); err == nil && 0 <= i && i < len(d.choices) {
			v.text, v.kind = d.choices[i], text
		}
	}

	return v
}

// numberAttribute returns the value of an attribute that is a number from least to most; want
// describes it in messages. ok is false if the file gives no valid value.
func (p *parser) numberAttribute(
	attribute string, where signalKey, least, most float64, want string,
) (f float64, ok bool) {
	v := p.attributeValue(attribute, where)
	if v.text == "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(v.text, 64)
	if err != nil || !(least <= f && f <= most) {
		p.tolerate(v, fmt.Sprintf("%s for the attribute %q, %s", v.format(), attribute, want), leftOut)
		return 0, false
	}

	return f, true
}

// wholeNumber returns a whole number of 64 bits exactly, 0 for another text.
func wholeNumber(text string, signed bool) int64 {
	if signed {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return int64(n)
}

// countAttribute is numberAttribute for a number from 0 to most; 0 if the file gives none.
func (p *parser) countAttribute(attribute string, where signalKey, most float64) float64 {
	f, _ := p.numberAttribute(attribute, where, 0, most, fmt.Sprintf("a number from 0 to %g", most))
	return f
}

// applyAttributes sets the fields of messages and signals that the file gives as attributes.
func (p *parser) applyAttributes() {
	protocol := p.attributeValue("ProtocolType", busObject).text
	for i := range p.db.Messages {
		m, of := &p.db.Messages[i], signalKey{message: i}
		const most = 1e9 // ms, 11 days
		ns := func(attribute string) int64 {
			return int64(math.Round(float64(p.countAttribute(attribute, of, most) * 1e6)))
		}
		m.CycleNs = ns("GenMsgCycleTime")
		m.FastNs = ns("GenMsgCycleTimeFast")
		m.DelayNs = ns("GenMsgDelayTime")
		m.Repeats = int(p.countAttribute("GenMsgNrOfRepetition", of, 1e6))
		m.SendType = p.attributeValue("GenMsgSendType", of).text
		format := p.attributeValue("VFrameFormat", of)
		if format.kind == number {
			format.text = formats[format.text]
		}
		own := p.values[attributeKey{"VFrameFormat", of}].kind != end
		fd := strings.HasSuffix(format.text, "_FD") // the default may name the format of the other identifiers
		m.J1939 = m.ID > can.MaskSFF && (format.text == "J1939PG" || !own && protocol == "J1939")
		m.FD = !m.J1939 && (m.Len > 8 || fd)
		m.LongFD = m.FD && !fd
		m.NoFormat = !m.J1939 && format.text == ""
		m.BRS = m.FD && p.attributeValue("CANFD_BRS", of).text == "1"
		for j := range m.Signals {
			s := &m.Signals[j]
			of := signalKey{i, s.Name}
			s.SPN = int(p.countAttribute("SPN", of, 1<<19-1))
			s.Initial, s.HasInitial = p.numberAttribute("GenSigStartValue", of, -math.MaxFloat64, math.MaxFloat64, "a number")
			if s.HasInitial && math.Abs(s.Initial) >= 1<<53 {
				s.InitialRaw = wholeNumber(p.attributeValue("GenSigStartValue", of).text, s.Signed)
			}
		}
	}

	p.applyLongNames()
}

// applyLongNames replaces names that were shortened in their statements by the full names.
func (p *parser) applyLongNames() {
	longNode := func(name *string) {
		if v := p.attributeValue("SystemNodeLongSymbol", nodeObject(*name)); *name != "" && v.text != "" {
			*name = v.text
		}
	}
	for i := range p.db.Messages {
		m := &p.db.Messages[i]
		longNode(&m.Sender)
		for j := range m.OtherSenders {
			longNode(&m.OtherSenders[j])
		}
		if v := p.attributeValue("SystemMessageLongSymbol", signalKey{message: i}); v.text != "" {
			m.Name = v.text
		}
		long := func(name string) string {
			if v := p.attributeValue("SystemSignalLongSymbol", signalKey{i, name}); name != "" && v.text != "" {
				return v.text
			}
			return name
		}

		for j := range m.Signals {
			s := &m.Signals[j]
			s.Name, s.MuxedBy = long(s.Name), long(s.MuxedBy)
			for k := range s.Receivers {
				longNode(&s.Receivers[k])
			}
		}
	}
}
