package specialise

import (
	"go/ast"
	"strings"
	"testing"
)

// A loop that clears or copies takes four instructions for each element. The functions clear and copy treat the same
// elements only if both parts are of fixed length and do not overlap.
func TestLoopsThatClearOrCopyBecomeCalls(t *testing.T) {
	assign := func(count, to, from string) *stmt {
		return &stmt{kind: loop, names: []string{"i"}, right: count, body: []*stmt{{kind: set, names: []string{to}, text: " = ", right: from}}}
	}
	for _, c := range []struct {
		count, to, from string
		want            string
	}{
		{"60", "k.tau[i]", "0", "clear(k.tau[:60])"},
		{"60", "k.on[i]", "false", "clear(k.on[:60])"},
		{"60", "k.tau[from2 + i]", "0", "clear(k.tau[from2:from2+60])"},
		{"60", "k.tau[i]", "k.w[93 + i]", "copy(k.tau[:60], k.w[93:153])"},
		{"60", "k.locks[b].rhs[i]", "start[i]", "copy(k.locks[b].rhs[:60], start[:60])"},
		{"60", "k.tau[i]", "y[i]", "copy(k.tau[:60], y[:60])"},
		{"8", "k.tau[i]", "0", ""},                           // short
		{"n", "k.tau[i]", "0", ""},                           // of a length that the tick computes
		{"60", "k.tau[i]", "1", ""},                          // not zero
		{"60", "k.tau[i]", "math.Copysign(0, -1)", ""},       // not the zero of clear
		{"60", "k.tau[i]", "k.w[j + 1]", ""},                 // one element for all
		{"60", "k.tau[i]", "k.w[2*i]", ""},                   // every second element
		{"60", "k.tau[i]", "k.w[i] + k.v[i]", ""},            // a sum
		{"60", "k.tau[i]", "-k.w[i]", ""},                    // another value
		{"60", "k.tau[i]", "k.tau[from + i]", ""},            // parts that may overlap
		{"60", "k.locks[0].rhs[i]", "k.locks[b].rhs[i]", ""}, // the same
		{"60", "k.tau[row[i]]", "0", ""},                     // in another order
		{"60", "k.locks[i].rhs[i]", "0", ""},                 // of several arrays
		{"60", "k.locks[i].rank", "0", ""},                   // not adjacent
	} {
		st := blocks([]*stmt{assign(c.count, c.to, c.from)})[0]
		if got := st.text; got != c.want || (st.kind == line) != (c.want != "") {
			t.Errorf("for i := range %s { %s = %s } becomes %q, want %q", c.count, c.to, c.from, got, c.want)
		}
	}
	adds := assign("60", "k.tau[i]", "k.w[i]")
	adds.body[0].text = " += "
	if st := blocks([]*stmt{adds})[0]; st.kind != loop {
		t.Errorf("a loop of sums becomes %q", st.text)
	}
}

// The compiler tests a pointer in every iteration of a loop, unless the function has tested it before.
func TestFunctionsWithLoopsTestTheKernelOnce(t *testing.T) {
	stored := &stmt{kind: set, names: []string{"k.tau[i]"}, text: " = ", right: "1"}
	local := &stmt{kind: set, names: []string{"sum"}, text: " += ", right: "1"}
	for _, c := range []struct {
		body []*stmt
		want bool
	}{
		{[]*stmt{{kind: loop, names: []string{"i"}, right: "3", body: []*stmt{stored}}}, true},
		{[]*stmt{{kind: branch, text: "k.on", body: []*stmt{{kind: loop, right: "3", body: []*stmt{local}}}}}, true},
		{[]*stmt{stored}, false},
		{[]*stmt{{kind: loop, right: "3", body: []*stmt{local}}}, false}, // k is not read: C would warn
	} {
		var b strings.Builder
		(&fn{name: "sum", method: true, decl: &ast.FuncDecl{}, body: c.body}).write(&b)
		if got := strings.Contains(b.String(), " {\n_ = *k\n"); got != c.want {
			t.Errorf("%s\ntests k at its start: %v, want %v", b.String(), got, c.want)
		}
	}
}
