package bench

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"lockstep/io/can"
	"lockstep/io/j1939"
	"lockstep/io/sigmap"
	"lockstep/io/yamlfile"
	"lockstep/model/units"
)

// J1939 is what a bench file says of the addresses from which it sends.
type J1939 struct {
	Lost      string // "stop", "safe" or "continue": when another node takes one away
	Addresses []Address
}

// Address is a source address and the NAME that it is claimed for.
type Address struct {
	At      yamlfile.Scalar
	Address uint8
	Name    j1939.Name
}

func readJ1939(r *yamlfile.Reader, n ast.Node, what string) *J1939 {
	v := &J1939{Lost: "stop"}
	r.Mapping(n, what, []yamlfile.Key{
		{Name: "lost", Read: func(n ast.Node) { v.Lost = r.Choice(n, what+": lost", "stop", "safe", "continue") }},
		{Name: "addresses", Read: func(n ast.Node) {
			for _, e := range r.Entries(n, what+": addresses") {
				v.Addresses = append(v.Addresses, readAddress(r, e, what, v.Addresses))
			}
		}},
	})
	if len(v.Addresses) == 0 {
		r.Fail(n, "%s: no address is named (addresses: {0x00: {function: engine, identity: 1}})", what)
	}
	return v
}

// readAddress reads ADDRESS: {function, identity, ...}; others are those before it.
func readAddress(r *yamlfile.Reader, e *ast.MappingValueNode, what string, others []Address) Address {
	a := Address{At: yamlfile.KeyScalar(e)}
	number, err := strconv.ParseUint(a.At.Text, 0, 8)
	if err != nil || number >= j1939.Null {
		r.Fail(e.Key, "%s: %q is not an address from 0 to 253 (0x00 to 0xFD)", what, a.At.Text)
	}
	a.Address = uint8(number)
	var f j1939.Fields
	what = fmt.Sprintf("%s: address %s", what, a.At.Text)
	part := func(name string, assign func(int), most int) yamlfile.Key {
		return yamlfile.Key{Name: name, Read: func(n ast.Node) {
			v := 0
			r.StoreInteger(&v, what+": "+name, 0, most)(n)
			assign(v)
		}}
	}
	r.Mapping(e.Value, what, []yamlfile.Key{
		{Name: "function", Read: func(n ast.Node) { f.Function = readFunction(r, n, what) }},
		part("identity", func(v int) { f.Identity = uint32(v) }, 1<<21-1),
		part("manufacturer", func(v int) { f.Manufacturer = uint16(v) }, 1<<11-1),
		part("function_instance", func(v int) { f.FunctionInstance = uint8(v) }, 31),
		part("ecu_instance", func(v int) { f.ECUInstance = uint8(v) }, 7),
		part("vehicle_system", func(v int) { f.VehicleSystem = uint8(v) }, 127),
		part("system_instance", func(v int) { f.SystemInstance = uint8(v) }, 15),
		part("industry_group", func(v int) { f.IndustryGroup = uint8(v) }, 7),
	})
	if r.Err != nil {
		return a
	}
	a.Name, _ = f.Name() // every part is within its bits
	for _, o := range others {
		switch {
		case o.Address == a.Address:
			r.Fail(e.Key, "%s is given twice, at line %d too", what, o.At.Line)
		case o.Name == a.Name:
			r.Fail(e.Key, "%s: address %s has the same NAME, %v; give it another identity", what, o.At.Text, o.Name)
		}
	}
	return a
}

// readFunction reads a function of a NAME: a word, or its number.
func readFunction(r *yamlfile.Reader, n ast.Node, what string) uint8 {
	w := r.Scalar(n, what+": function")
	var words []string
	for _, f := range j1939.Functions() {
		if f.Word == w.Text {
			return f.Value
		}
		words = append(words, f.Word)
	}
	v, err := strconv.ParseUint(w.Text, 0, 8)
	if r.Err == nil && err != nil {
		r.Fail(n, "%s: function: %q is neither a number from 0 to 255 nor one of %s%s", what, w.Text, strings.Join(words, ", "), units.Meant(w.Text, words))
	}
	return uint8(v)
}

// addresses checks that each message sent has a source address that is claimed, and
// that each address claimed is that of a message.
func (b *Bench) addresses(bus *Bus, m *sigmap.Map) error {
	if bus.J1939 == nil {
		return nil
	}
	sends := map[uint8]bool{}
	for i := range m.Tx {
		id := j1939.ParseID(m.Tx[i].ID)
		if m.Tx[i].ID&can.EFF == 0 {
			return b.Errorf(bus.Frames[i].Message, "bus %q: message %s has 11 bits of identifier: it is none of J1939's", bus.Name.Text, m.Tx[i].Name)
		}
		if bus.J1939.find(id.Source) < 0 {
			return b.Errorf(bus.Frames[i].Message, "bus %q: nobody claims 0x%02X, from which message %s is sent; add it to j1939: addresses, or leave j1939 out: nothing is claimed then",
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

// AddressesText says which addresses a bus claims, one per line.
func (j *J1939) AddressesText() (text string) {
	if j == nil {
		return ""
	}
	for _, a := range j.Addresses {
		text += fmt.Sprintf("  address 0x%02X is claimed for NAME %v (%s); when it is lost: %s\n", a.Address, a.Name, a.Name.About(), j.Lost)
	}
	return text
}

func (j *J1939) find(address uint8) int {
	for i, a := range j.Addresses {
		if a.Address == address {
			return i
		}
	}
	return -1
}
