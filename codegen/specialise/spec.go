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
	"regexp"
	"strings"

	"lockstep/model/kernel"
)

// spec specialises the tick to one plant, in passes. Each pass assumes that the cells of the kernel
// keep their values after New, except for cells that an earlier pass saw assigned another value.
// The last pass finds nothing new.
type spec struct {
	*program
	plant       *kernel.Tables
	elements    map[string][]string // names of the elements, by kind
	root        *place
	assigned    cells           // cells that are assigned
	lastRead    cells           // cells that the previous pass read; nil: not known
	limit       int             // largest number of statements of an unrolled loop
	maxInline   int             // largest number of statements of an inlined method
	oneQuiet    bool            // one quiet tick serves all lock sets: the code of one for each is too long
	largeStack  map[string]bool // functions with so much stack that their calls are indirect
	numbers     map[string]*data
	keptLoops   map[string]bool // functions with a loop that is not unrolled
	classes     *classes
	firstArg    int64 // index of the first argument in the stack of programs, as in kernel.Kernel
	firstResult int64 // index of the first result there

	at        ast.Node // source node that this pass has reached
	read      cells    // cells that this pass reads
	changed   bool     // this pass found something new
	fns       map[string]*fn
	order     []*fn           // generated functions, callees first
	used      map[string]bool // names at the top of the package
	tables    map[string]*tickTable
	tableList []*tickTable      // in the order of their first use
	padded    map[string]int    // lengths of the arrays of the kernel that are longer than their content
	helper    map[string]bool   // helper functions in use
	shapes    map[string]*place // one of the cells of each shape
	sizes     map[string]int    // lengths of the arrays that contain these cells
	pureFuncs map[string]bool   // generated functions without an effect, by the name of their calls
}

// fn is a function of the generated tick.
type fn struct {
	name, about string
	params      []string // "name type"
	args        []string // names of the parameters
	results     []types.Type
	returns     []*value // values that all returns have in common; nil where they differ
	body        []*stmt
	effects     bool // the function assigns to the kernel
	busy        bool // the function is being generated
	indirect    bool // calls of the function are indirect: the linker restarts its count of the stack
	method      bool // the function uses the kernel k
	key         string
	depth       int  // largest stack of the function and its calls, bytes
	below       int  // largest stack of its calls, bytes
	entry       bool // the function is called from outside the tick
	decl        *ast.FuncDecl

	out        *[]*stmt
	emitted    int // statements written so far
	bound      int // limit of emitted, for attempts
	strict     int // limit of emitted, while a call is inlined as a few statements
	names      map[string]int
	rows       []map[string]string // pointers to rows of tables, by block
	stackCells map[string]*value   // known values of cells of the stack of programs, by cell
}

// newSpec returns the specialisation of a plant, before its first pass.
func newSpec(j *Plant) (*spec, error) {
	p, err := loadTick()
	if err != nil {
		return nil, err
	}
	s := &spec{
		program: p, plant: j.Tables, elements: elements(j),
		assigned: cells{}, numbers: map[string]*data{}, largeStack: map[string]bool{}, limit: unrollLimit, maxInline: inlineLimit,
	}
	typ := p.pkg.Scope().Lookup("Kernel").Type()
	k := reflect.ValueOf(kernel.New(j.Tables)).Elem()
	s.root = variablePlace("k", typ, k)
	s.classes = newClasses(k.FieldByName("programs"))
	s.firstArg, s.firstResult = k.FieldByName("firstArg").Int(), k.FieldByName("firstResult").Int()
	return s, nil
}

// runPasses makes passes until one finds no new assigned cell and no assigned cell that is not
// read. An error names the place in the source that cannot be specialised. progress is that of Plant.
func (s *spec) runPasses(progress func(passes, expected int)) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("codegen: %s: %v", s.fset.Position(s.at.Pos()), r)
		}
	}()

	expected := typicalPasses
	for pass := range maxPasses {
		s.runPass()
		if progress != nil {
			progress(pass+1, max(expected, pass+2))
		}
		if pass >= usualPasses {
			maps.Copy(s.read, s.lastRead)
		}
		switch {
		case s.limit > smallUnrollLimit && s.countStatements() > largeTick:
			switch {
			case s.byLockSet():
				s.oneQuiet = true
			case s.maxInline > 0:
				s.maxInline = 0
			default:
				s.limit, s.maxInline = smallUnrollLimit, inlineLimit
			}

			s.assigned, s.lastRead = cells{}, nil
			expected = pass + 1 + typicalPasses
		case s.changed:
		case maps.Equal(s.lastRead, s.read):
			return nil
		case pass > maxPasses/2: // passes alternate: keep each cell that any of them reads
			known := len(s.lastRead)
			if maps.Copy(s.lastRead, s.read); len(s.lastRead) == known {
				s.read = s.lastRead
				return nil
			}
		default:
			s.lastRead = s.read
		}
	}

	return errors.New("codegen: the specialised tick does not converge")
}

// fail ends the run with a message.
func (s *spec) fail(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// maxPasses bounds the search for assigned and read cells. It takes about typicalPasses. After
// usualPasses, cells of two passes count as read: a tick that does not store a cell may be short
// enough for an inlined call that reads it, so that the passes would alternate.
const (
	typicalPasses = 10
	usualPasses   = 20
	maxPasses     = 40
)

// In a tick of up to largeTick statements, loops of up to unrollLimit statements are unrolled and
// methods of up to inlineLimit statements are inlined. A larger tick has one quiet tick for all lock
// sets in place of one for each. If it is still too large, it calls these methods. If that does not
// suffice, only loops of up to smallUnrollLimit statements are unrolled: code that fits the
// processor's cache is faster.
const (
	unrollLimit      = 600
	smallUnrollLimit = 60
	inlineLimit      = 24
	largeTick        = 12000
)

// countStatements returns the number of statements of the tick.
func (s *spec) countStatements() (n int) {
	for _, f := range s.reached() {
		n += size(f.body)
	}
	return n
}

// runPass follows the tick once.
func (s *spec) runPass() {
	s.changed, s.read, s.fns, s.order = false, cells{}, map[string]*fn{}, nil
	s.used, s.tables, s.tableList, s.padded = maps.Clone(reservedNames), map[string]*tickTable{}, nil, map[string]int{}
	s.shapes, s.sizes = map[string]*place{}, map[string]int{}
	s.pureFuncs, s.helper, s.keptLoops = map[string]bool{}, map[string]bool{}, map[string]bool{}
	s.keepEventLog()
	s.addEntry("step", "Step", s.array("y", len(s.plant.Outputs)), s.array("u", len(s.plant.Inputs)))
	s.addEntry("output", "Output", s.array("y", len(s.plant.Outputs)))
	s.addEntry("reset", "Reset")
	s.addEntry("drive", "Drive", nil, nil)
	s.addEntry("driven", "Driven", nil)
	s.addEntry("own", "Own", nil)
	if s.plant.Places > 0 {
		s.addEntry("change", "Change", nil, nil, nil, nil)
	}
}

// reservedNames are the names that a package-level name must not hide or repeat.
var reservedNames = newReservedNames()

// newReservedNames returns the package's own names, Go's predeclared names and its keywords.
func newReservedNames() map[string]bool {
	names := namesOf(`Kernel k y u math bits jump New Event Port Inputs Outputs States Elements
		lesser greater larger atMost atLeast`)
	for _, n := range types.Universe.Names() {
		names[n] = true
	}
	for t := token.BREAK; t <= token.VAR; t++ {
		names[t.String()] = true
	}
	return names
}

// array returns a slice parameter of float64 of length n.
func (s *spec) array(name string, n int) *value {
	typ := types.NewSlice(types.Typ[types.Float64])
	at := variablePlace(name, types.NewArray(types.Typ[types.Float64], int64(n)), reflect.Value{})
	at.param = true
	return &value{kind: slice, typ: typ, at: at, off: wholeNumber(0), len: wholeNumber(n)}
}

// addEntry generates a function that is called from outside.
func (s *spec) addEntry(name, source string, args ...*value) {
	d := s.kernelMethods[source]
	for i, n := range names(d.Type.Params) {
		if args[i] == nil {
			args[i] = dynamic(n.Name, operand, s.info.TypeOf(n))
		}
	}

	s.at = d
	kernel := &value{kind: ref, at: s.root, typ: types.NewPointer(s.root.typ)}
	g := (&frame{spec: s}).specialise(d, false, append([]*value{kernel}, args...))
	g.name, g.entry, g.method = name, true, true
}

// cells is a set of cells of the kernel; * stands for an index that the tick computes. It also
// holds the shape of each cell, after shapePrefix.
type cells map[string]bool

func (c cells) add(at *place) { c[at.cell()], c[shapePrefix+at.shape()] = true, true }

const shapePrefix = "any "

var index = regexp.MustCompile(`\[(\d+)\]`)

// has reports whether the set has a cell, or the cell with * for some of its indices.
func (c cells) has(p *place) bool {
	cell := p.cell()
	switch {
	case c[cell]:
		return true
	case !c[shapePrefix+p.shape()]:
		return false
	case strings.Contains(cell, "*"):
		return true
	}

	at := index.FindAllStringIndex(cell, -1)
	for set := 1; set < 1<<len(at); set++ {
		pattern := cell
		for i := len(at) - 1; i >= 0; i-- {
			if set>>i&1 == 1 {
				pattern = pattern[:at[i][0]] + "[*]" + pattern[at[i][1]:]
			}
		}

		if c[pattern] {
			return true
		}
	}

	return false
}

// recordAssigned adds a cell to the assigned cells.
func (s *spec) recordAssigned(at *place) {
	if !s.assigned[at.cell()] {
		s.assigned.add(at)
		s.changed = true
	}
}

// powerOfTwo returns the smallest power of two that is at least n.
func powerOfTwo(n int) int { return 1 << bits.Len(uint(max(n, 1)-1)) }

// boundedIndex returns the text of index i into p, within bounds that the compiler sees: an index
// other than a loop counter is masked, and the length of the array is a power of two.
func (s *spec) boundedIndex(p *place, i *value) string {
	if p.fixed {
		return i.text
	}
	key := p.shape()
	if i.bound > 0 {
		s.padded[key] = max(s.padded[key], i.bound)
		return i.text
	}

	n := s.arrayLength(p)
	if i.within(n) {
		return i.text
	}
	if p.param {
		s.fail("index %s of %s is not known to be within %d", i.text, p.full(), n)
	}
	s.padded[key] = max(s.padded[key], powerOfTwo(n))
	return i.masked(n).text
}

// arrayLength returns the length of the array at a place; the largest one if the place can be
// several arrays.
func (s *spec) arrayLength(p *place) (n int) {
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

// recordShape records the shape of a cell, and the lengths of the arrays that contain it.
func (s *spec) recordShape(at *place) {
	s.shapes[at.shape()] = at
	for p := at; p.parent != nil; p = p.parent {
		if p.index != nil {
			key := p.parent.shape()
			s.sizes[key] = max(s.sizes[key], s.arrayLength(p.parent))
		}
	}
}

// keepEventLog makes the log of events a part of every kernel.
func (s *spec) keepEventLog() { s.keepEventLogIn(s.root) }

func (s *spec) keepEventLogIn(in *place) {
	typ := structOf(in.typ)
	for i := range typ.NumFields() {
		switch at := in.field(i); typ.Field(i).Name() {
		case "plantState", "counts":
			s.keepEventLogIn(at)
		case "logged":
			s.keepAlways(at)
		case "log":
			one := s.element(at, &value{text: "i", typ: types.Typ[types.Int], ranged: true})
			for j := range structOf(one.typ).NumFields() {
				s.keepAlways(one.field(j))
			}
		}
	}
}

// keepAlways makes a cell a part of every kernel.
func (s *spec) keepAlways(at *place) {
	s.recordAssigned(at)
	s.read.add(at)
	s.recordShape(at)
}
