package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lockstep/io/can"
	"lockstep/io/j1939"
	"lockstep/io/sigmap"
	"lockstep/io/yamlfile"
	"lockstep/model/units"
)

// J1939 is the section of a bench file with the addresses that the bench claims.
type J1939 struct {
	Lost      string // reaction to a lost address: "stop", "safe" or "continue"
	Addresses []Address
}

// Address is a source address with the NAME that claims it.
type Address struct {
	At      yamlfile.Scalar
	Address uint8
	Name    j1939.Name
}

func readJ1939(r *yamlfile.Reader, f yamlfile.Field, what string) *J1939 {
	s := r.Section(f, what, "lost", "addresses")
	v := &J1939{Lost: cmp.Or(r.Choice(s["lost"], what+": lost", "stop", "safe", "continue"), "stop")}
	for _, a := range r.FieldsOf(s["addresses"], what+": addresses") {
		v.Addresses = append(v.Addresses, readAddress(r, a, what, v.Addresses))
	}
	if len(v.Addresses) == 0 {
		r.Fail(f, "%s: no address is named (addresses: {0x00: {function: engine, identity: 1}})", what)
	}
	return v
}

// readAddress reads ADDRESS: {function, identity, ...}; others are the addresses before it.
func readAddress(r *yamlfile.Reader, f yamlfile.Field, what string, others []Address) Address {
	a := Address{At: f.KeyScalar()}
	var ok bool
	if a.Address, ok = parseAddress(f.Key); !ok {
		r.FailAt(f.KeyAt, "%s: %q is not an address from 0 to 253 (0x00 to 0xFD)", what, f.Key)
	}
	what = fmt.Sprintf("%s: address %s", what, f.Key)
	var keys []string
	for _, p := range j1939.Parts() {
		keys = append(keys, p.Key)
	}
	s := r.Section(f, what, keys...)
	for _, p := range j1939.Parts() {
		v := 0
		if p.Key == "function" {
			v = readFunction(r, s[p.Key], what)
		} else {
			v = r.Integer(s[p.Key], what+": "+p.Key, 0, p.Max())
		}

		a.Name |= j1939.Name(v) << p.Shift
	}

	for _, o := range others {
		switch {
		case o.Address == a.Address:
			r.FailAt(f.KeyAt, "%s is used twice, first in line %d", what, o.At.Line)
		case o.Name == a.Name:
			r.FailAt(f.KeyAt, "%s: address %s has the same NAME, %v; give it another identity", what, o.At.Text, o.Name)
		}
	}

	return a
}

// parseAddress reads an address that a node can have.
func parseAddress(text string) (uint8, bool) {
	n, err := strconv.ParseUint(text, 0, 8)
	return uint8(n), err == nil && n < j1939.Null
}

// readAddressOf reads the address of a message, or the word for several: "any" for a received message,
// "all" for the destination of a sent one, "" for none.
func readAddressOf(r *yamlfile.Reader, f yamlfile.Field, what, several string) sigmap.Address {
	if f.IsMissing() {
		return sigmap.Address{}
	}
	text := r.Scalar(f, what).Text
	if v, ok := map[string]uint8{"any": j1939.Null, "all": j1939.Global}[text]; ok && text == several {
		return sigmap.Address{Given: true, Value: v}
	}
	v, ok := parseAddress(text)
	if !ok && several != "" {
		several = ", or " + several
	}
	if !ok {
		r.Fail(f, "%s: %q is not an address from 0 to 253 (0x00 to 0xFD)%s", what, text, several)
	}
	return sigmap.Address{Given: true, Value: v}
}

// readFunction reads the function of a NAME: its name or its number.
func readFunction(r *yamlfile.Reader, f yamlfile.Field, what string) int {
	w := r.Scalar(f, what+": function")
	var words []string
	for _, known := range j1939.Functions() {
		if known.Name == w.Text {
			return int(known.Value)
		}
		words = append(words, known.Name)
	}

	v, err := strconv.ParseUint(w.Text, 0, 8)
	if err != nil {
		r.Fail(f, "%s: function: %q is neither a number from 0 to 255 nor one of %s%s",
			what, w.Text, strings.Join(words, ", "), units.Meant(w.Text, words))
	}

	return int(v)
}

// checkAddresses checks that the source address of each sent message is claimed, and that
// each claimed address is the source of a message.
func (b *Bench) checkAddresses(bus *Bus, m *sigmap.Map) error {
	if bus.J1939 == nil {
		return nil
	}
	sends := map[uint8]bool{}
	for i := range m.Tx {
		id, at := j1939.ParseID(m.Tx[i].ID), bus.positions[sigmap.Place{List: sigmap.InSendings, Index: i}]
		if m.Tx[i].ID&can.EFF == 0 {
			return b.Errorf(at, "bus %q: message %s has an identifier of 11 bits and is not a message of J1939",
				bus.Name.Text, m.Tx[i].Name)
		}

		if !slices.ContainsFunc(bus.J1939.Addresses, func(a Address) bool { return a.Address == id.Source }) {
			return b.Errorf(at, "bus %q: no address 0x%02X is claimed, but message %s is sent from it; "+
				"add it to j1939: addresses, or remove j1939 to claim no address",
				bus.Name.Text, id.Source, m.Tx[i].Name)
		}

		sends[id.Source] = true
	}

	for _, a := range bus.J1939.Addresses {
		if !sends[a.Address] {
			return b.Errorf(a.At, "bus %q: no message is sent from address %s", bus.Name.Text, a.At.Text)
		}
	}

	return nil
}

// portsNeeded returns a bit for each bus that has addresses of J1939, messages of several frames or a diagnosis file.
func (b *Bench) portsNeeded(maps []*sigmap.Map) (needed uint64) {
	for i, m := range maps {
		if b.Buses[i].J1939 != nil || m.HasLong() || b.Buses[i].Diagnosis.Text != "" {
			needed |= 1 << i
		}
	}
	return needed
}

// DescribeAddresses lists the addresses that a bus claims, one per line.
func (j *J1939) DescribeAddresses() (text string) {
	if j == nil {
		return ""
	}
	for _, a := range j.Addresses {
		text += fmt.Sprintf("  address 0x%02X is claimed for NAME %v (%s); when it is lost: %s\n",
			a.Address, a.Name, a.Name.Describe(), j.Lost)
	}

	return text
}
