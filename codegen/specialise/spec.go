package specialise

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"math/bits"
	"reflect"
	"strings"

	"lockstep/model/kernel"
)

// spec specialises the tick to one plant, in rounds. Each takes it that what is in the
// kernel after New keeps its value for ever, but for what the rounds before found to be
// assigned something else; the last one finds nothing new.
type spec struct {
	*program
	plant   *kernel.Tables
	signals []string // names of the signals; "" for those that have none
	root    *place
	y, u    int             // outputs and inputs
	given   map[string]bool // cells, with * for indices that the tick computes, that are assigned
	any     map[string]bool // the same with * for every index
	asked   map[string]bool // cells that the round before read; nil: not known
	limit   int             // statements that a loop may become
	few     int             // statements that a method may have that is followed in place
	heavy   map[string]bool // functions that take so much stack that what they call must begin anew
	numbers map[string]*data
	notes   map[string]bool // functions with a loop that stayed one

	read   map[string]bool // cells that this round reads
	grown  bool            // this round found something new
	fns    map[string]*fn
	order  []*fn
	used   map[string]bool // names at the top of the package
	tables map[string]*tickTable
	list   []*tickTable
	padded map[string]int // arrays of the kernel that are longer than they need to be
	helper map[string]bool
	shapes map[string]*place // one of the cells of each kind
	sizes  map[string]int    // lengths of the arrays that they are in
	silent map[string]bool   // functions without an effect, as they are called
}

// fn is a function of the generated tick.
type fn struct {
	name, about string
	params      []string // "name type"
	args        []string // names of these
	results     []types.Type
	returns     []*value // what all its returns have in common; nil where they differ
	returned    bool
	body        []*stmt
	effects     bool // it assigns to the kernel
	busy        bool
	jump        bool // called through a variable, where the linker counts stack anew
	method      bool
	key         string
	depth       int // bytes of stack that it and what it calls take, at most
	below       int // of what it calls
	entry       bool
	decl        *ast.FuncDecl

	out     *[]*stmt
	emitted int
	bound   []int // of emitted, for attempts
	strict  int   // of emitted, for what is to be brief; 0: none
	names   map[string]int
	rows    []map[string]string // pointers to rows of tables, by block
	kept    map[string]*value   // what cells of the stack of programs hold
	looks   bool                // it reads such a cell where it lies
}

func newSpec(j *Plant) (*spec, error) {
	p, err := loadTick()
	if err != nil {
		return nil, err
	}
	t := j.Tables
	k := kernel.New(t)
	m, y := k.Dims()
	s := &spec{program: p, plant: t, signals: j.Signals, y: y, u: m, given: map[string]bool{}, any: map[string]bool{}, numbers: map[string]*data{}, heavy: map[string]bool{}, limit: generous, few: few}
	typ := p.pkg.Scope().Lookup("Kernel").Type()
	s.root = &place{text: "k", key: "k", typ: typ, one: reflect.ValueOf(k).Elem()}
	return s, nil
}

// run makes rounds until one finds nothing new that is assigned, and nothing more that is
// assigned and not read.
func (s *spec) run() (err error) {
	defer func() {
		if r := recover(); r != nil {
			if e, ok := r.(sourceError); ok {
				err = e
				return
			}
			panic(r)
		}
	}()
	for range rounds {
		s.round()
		if s.limit > frugal && s.statements() > large {
			if s.few > 0 {
				s.few = 0
			} else {
				s.limit, s.few = frugal, few
			}
			s.given, s.any, s.asked = map[string]bool{}, map[string]bool{}, nil
			continue
		}
		if s.grown {
			continue
		}
		if maps.Equal(s.asked, s.read) {
			return nil
		}
		s.asked = s.read
	}
	return errors.New("codegen: the specialised tick does not settle")
}

// rounds bounds the search for what is assigned and read. It takes about ten.
const rounds = 40

// large is how many statements a tick may have in which loops of up to generous statements
// are written out and methods of up to few are followed in place; a larger one calls these,
// and if that does not help its loops are of up to frugal statements: it is faster as long
// as the processor keeps it.
const (
	generous = 600
	frugal   = 60
	few      = 24
	large    = 12000
)

// statements is how many there are.
func (s *spec) statements() (n int) {
	for _, f := range s.reached() {
		n += size(f.body)
	}
	return n
}

// sourceError is what the specialiser cannot take, with its place in the source.
type sourceError string

func (e sourceError) Error() string { return "codegen: " + string(e) }

func (s *spec) fail(n ast.Node, format string, args ...any) {
	at := ""
	if n != nil {
		at = s.fset.Position(n.Pos()).String() + ": "
	}
	panic(sourceError(at + fmt.Sprintf(format, args...)))
}

func (s *spec) round() {
	s.grown, s.read, s.fns, s.order = false, map[string]bool{}, map[string]*fn{}, nil
	s.used, s.tables, s.list, s.padded = map[string]bool{}, map[string]*tickTable{}, nil, map[string]int{}
	s.shapes, s.sizes = map[string]*place{}, map[string]int{}
	s.silent = map[string]bool{}
	s.helper, s.notes = map[string]bool{}, map[string]bool{}
	for _, name := range []string{"Kernel", "k", "y", "u", "math", "bits", "jump", "New", "Event", "Port", "Inputs", "Outputs", "States", "Elements", "lesser", "greater", "atMost", "atLeast"} {
		s.used[name] = true
	}
	for name := range tokenNames {
		s.used[name] = true
	}
	s.log()
	s.entry("step", "Step", s.array("y", s.y), s.array("u", s.u))
	s.entry("output", "Output", s.array("y", s.y))
	s.entry("reset", "Reset")
	s.entry("drive", "Drive", nil, nil)
	s.entry("driven", "Driven", nil)
	s.entry("own", "Own", nil)
}

// tokenNames are those that a name at the top of a package must not hide.
var tokenNames = map[string]bool{}

func init() {
	for _, n := range types.Universe.Names() {
		tokenNames[n] = true
	}
	for t := token.BREAK; t <= token.VAR; t++ {
		tokenNames[t.String()] = true
	}
}

// array is the slice of float64 that a parameter brings.
func (s *spec) array(name string, n int) *value {
	typ := types.NewSlice(types.Typ[types.Float64])
	at := &place{text: name, key: name, typ: types.NewArray(types.Typ[types.Float64], int64(n)), param: true}
	return &value{kind: slice, typ: typ, at: at, off: wholeNumber(0), len: wholeNumber(n)}
}

// entry makes a function that is called from outside.
func (s *spec) entry(name, source string, args ...*value) {
	d := s.named[source]
	typ := s.info.Defs[d.Name].Type().(*types.Signature).Params()
	for i, a := range args {
		if a == nil {
			args[i] = dynamic(typ.At(i).Name(), operand, typ.At(i).Type())
		}
	}
	f := &frame{spec: s}
	g := f.specialise(d, false, &value{kind: ref, at: s.root, typ: types.NewPointer(s.root.typ)}, args)
	g.name, g.entry, g.method = name, true, true
}

// isGiven reports whether a cell can have another value than after New.
func (s *spec) isGiven(cell string) bool {
	if strings.Contains(cell, "*") {
		return s.any[wild(cell)]
	}
	if s.given[cell] {
		return true
	}
	if !s.any[wild(cell)] {
		return false
	}
	return isAmong(s.given, cell)
}

// give notes that a cell is assigned.
func (s *spec) give(cell string) {
	if !s.given[cell] {
		s.given[cell], s.any[wild(cell)], s.grown = true, true, true
	}
}

// isAmong reports whether cells has this one with any of its indexes left open.
func isAmong(cells map[string]bool, cell string) bool {
	at := indexes(cell)
	for set := 1; set < 1<<len(at); set++ {
		pattern := cell
		for i := len(at) - 1; i >= 0; i-- {
			if set>>i&1 == 1 {
				pattern = pattern[:at[i][0]] + "[*]" + pattern[at[i][1]:]
			}
		}
		if cells[pattern] {
			return true
		}
	}
	return false
}

// isAsked reports whether what is stored in a cell is read.
func (s *spec) isAsked(cell string) bool {
	if s.asked == nil || s.asked[cell] {
		return true
	}
	if !s.asked["any "+wild(cell)] {
		return false
	}
	if strings.Contains(cell, "*") {
		return true
	}
	return isAmong(s.asked, cell)
}

func (s *spec) ask(cell string) {
	s.read[cell], s.read["any "+wild(cell)] = true, true
}

// power is the least power of two that is not below n.
func power(n int) int { return 1 << bits.Len(uint(max(n, 1)-1)) }

// bounded is the text of index i into p, within its bounds for the compiler to see: what is
// no loop's index is masked, and the array is as long as a power of two.
func (s *spec) bounded(p *place, i *value) string {
	if p.fixed {
		return i.text
	}
	key := wild(p.cell())
	if i.within > 0 {
		s.padded[key] = max(s.padded[key], i.within)
		return i.text
	}
	n := s.room(p)
	if i.ranged && i.lo >= 0 && i.hi < int64(n) {
		return i.text
	}
	if p.param {
		s.fail(nil, "index %s of %s is not known to be within %d", i.text, p.full(), n)
	}
	s.padded[key] = max(s.padded[key], power(n))
	return arith("&", i, constantValue(int64(power(n)-1), i.typ)).text
}

// room is how long an array is, of several the longest.
func (s *spec) room(p *place) (n int) {
	if p.param {
		return int(p.typ.(*types.Array).Len())
	}
	for _, m := range p.family().list {
		if m = pointed(m); m.IsValid() {
			n = max(n, m.Len())
		}
	}
	return n
}

// shape notes of what kind the cells like this one are.
func (s *spec) shape(at *place) {
	s.shapes[wild(at.cell())] = at
	for p := at; p.parent != nil; p = p.parent {
		if p.index == nil {
			continue
		}
		key := wild(p.parent.cell())
		for _, m := range p.parent.family().list {
			if m = pointed(m); m.IsValid() {
				s.sizes[key] = max(s.sizes[key], m.Len())
			}
		}
	}
}

// log makes the log of events a part of every kernel.
func (s *spec) log() {
	typ := structOf(s.root.typ)
	for i := range typ.NumFields() {
		switch name := typ.Field(i).Name(); name {
		case "log", "logged":
			at := s.root.field(typ.Field(i), i)
			cells := []*place{at}
			if name == "log" {
				elem := at.typ.Underlying().(*types.Array).Elem()
				one := s.element(at, &value{text: "i", typ: types.Typ[types.Int], ranged: true}, elem)
				cells = nil
				for j := range structOf(elem).NumFields() {
					cells = append(cells, one.field(structOf(elem).Field(j), j))
				}
			}
			for _, c := range cells {
				s.give(c.cell())
				s.ask(c.cell())
				s.shape(c)
			}
		}
	}
}
