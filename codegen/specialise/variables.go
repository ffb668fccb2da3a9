package specialise

import "go/types"

// lower tells variables that they are no longer in a branch.
func (f *frame) lower() {
	for obj, b := range f.vars {
		if b.dyn > f.dyn {
			b.dyn = f.dyn
			f.vars[obj] = b
		}
	}
}

// join keeps of the variables what both ways agree on.
func (f *frame) join(other map[types.Object]binding) {
	for obj, b := range f.vars {
		o, ok := other[obj]
		if !ok {
			continue
		}
		if b.val.kind == scalar && o.val.kind == scalar {
			if b.val.con != nil && o.val.con != nil && b.val.text == o.val.text {
				b.fresh = b.fresh && o.fresh
			} else if b.val.key() != o.val.key() {
				b.val = f.variable(obj, b.name)
				b.fresh = true
			} else if !o.val.plus {
				v := *b.val
				v.plus = false
				b.val = &v
			}
			f.vars[obj] = b
			continue
		}
		if b.val.key() != o.val.key() {
			b.val = &value{kind: lost, typ: b.val.typ}
			f.vars[obj] = b
		}
	}
}

// variable is what a variable of the generated code holds.
func (f *frame) variable(obj types.Object, name string) *value {
	v := dynamic(name, operand, obj.Type())
	v.stable = !f.multi[obj]
	return v
}

// settleVars gives the scalars that a branch or a loop assigns a variable that holds them.
func (f *frame) settleVars(list []types.Object, forget bool) {
	for _, obj := range list {
		b, ok := f.vars[obj]
		if !ok || b.val.kind != scalar {
			continue
		}
		switch {
		case b.name == "":
			b.name = f.unique(obj.Name())
			v := *b.val
			v.typ = obj.Type()
			f.emit(&stmt{kind: declare, names: []string{b.name}, right: v.typed(), pure: f.pure(v.text)})
		case !b.fresh:
			f.emit(&stmt{kind: set, names: []string{b.name}, right: b.val.text, pure: f.pure(b.val.text)})
		}
		b.fresh, b.dyn = true, f.dyn
		if forget || b.val.con == nil {
			plus := b.val.plus && !forget
			b.val = f.variable(obj, b.name)
			b.val.plus = plus
		}
		f.vars[obj] = b
	}
}
