package specialise

import (
	"fmt"
	"go/ast"
	"go/types"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Laws of one kind, such as those of all wheels, are programs with the same instructions on other tables, states and
// signals: a class. Where the tick computes which program it evaluates, a function for each class has the instructions
// as statements. One function for all programs would interpret them, which takes three times as long.

// programOf returns the program among the arguments of a function with the directive programs; nil for other functions.
func (f *frame) programOf(d *ast.FuncDecl) *value {
	if !f.byProgram[d] {
		return nil
	}
	return f.vars[f.info.Defs[names(d.Type.Params)[0]]].val
}

// selectClass emits the branches that call a function for the class of its program and return its results.
func (f *frame) selectClass(d *ast.FuncDecl, p *value) flow {
	class := f.columnOf(p.at, types.Typ[types.Int], "Class", func(m reflect.Value) any { return int64(f.classes.classOf(m)) })
	set := func(args []*value, n int) { args[1] = refer(f.ofClass(p.at, n)) }
	return f.selectCall(d, f.freeze(class, "class"), 0, len(f.classes.size), set)
}

// asMember returns a known program as one of its class, if the class has several: their function serves all of them.
func (f *frame) asMember(p *value) *value {
	if !p.at.known {
		return p
	}
	class := f.classes.classOf(p.at.family().list[0])
	if f.classes.size[class] == 1 {
		return p
	}
	number := dynamic(p.at.index.text, operand, p.at.index.typ)
	number.stable = true
	return refer(f.ofClass(f.element(p.at.parent, number), class))
}

// ofClass returns the place of a program that belongs to a class.
func (s *spec) ofClass(p *place, class int) *place {
	q, name := *p, fmt.Sprint("Class", class)
	q.text, q.key, q.wild, q.class = p.text+name, p.key+name, p.wild+name, class+1
	q.family = sync.OnceValue(func() family {
		out := p.family()
		out.list = slices.Clone(out.list)
		for i, m := range out.list {
			if s.classes.classOf(m) != class {
				out.list[i] = reflect.Value{}
			}
		}
		return out
	})
	return &q
}

// classOf returns the class of a program.
func (c *classes) classOf(m reflect.Value) int { return c.of[m.UnsafeAddr()] }

// classes are the classes of the programs of a kernel.
type classes struct {
	of   map[uintptr]int // class of each program by its address
	size []int           // number of programs of each class
}

// newClasses returns the classes of programs.
func newClasses(programs reflect.Value) *classes {
	c, keys := &classes{of: map[uintptr]int{}}, map[string]int{}
	for i := range programs.Len() {
		m := programs.Index(i)
		key := classKey(m)
		if _, ok := keys[key]; !ok {
			keys[key], c.size = len(keys), append(c.size, 0)
		}
		c.of[m.UnsafeAddr()] = keys[key]
		c.size[keys[key]]++
	}
	return c
}

// classKey returns a text of what the programs of a class share: the operations with their operands, and the numbers of
// terms of the arguments.
func classKey(m reflect.Value) string {
	var b strings.Builder
	fields := func(list reflect.Value, names ...string) {
		for i := range list.Len() {
			for _, n := range names {
				fmt.Fprint(&b, list.Index(i).FieldByName(n), " ")
			}
		}
		b.WriteByte(';')
	}
	fields(m.FieldByName("instructions"), "code", "a", "b", "c", "d")
	fields(m.FieldByName("read"), "plain", "states", "signals", "torques")
	return b.String()
}

// isInstruction reports whether a type is that of the instructions of programs.
func isInstruction(t types.Type) bool {
	named, ok := t.(*types.Named)
	return ok && named.Obj().Name() == "instruction"
}
