package specialise

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// stmt is a statement of the generated tick.
type stmt struct {
	kind  stmtKind
	text  string   // a line; the head of an if or for
	names []string // variables that the statement declares or sets
	right string   // expression that it assigns to them
	pure  bool     // right calls nothing that has an effect
	sink  *sink    // vector to which it adds, where right does not read the vector
	body  []*stmt
	els   []*stmt
}

type stmtKind uint8

const (
	line    stmtKind = iota
	declare          // names := right
	set              // names = right
	branch           // if text {body} else {els}
	loop             // for names := range right {body}, or for text {body}
	comment
	block // {body} text:
)

// write appends the statements as text; gofmt indents them.
func write(b *strings.Builder, list []*stmt) {
	for _, st := range list {
		switch st.kind {
		case line:
			b.WriteString(st.text + "\n")
		case comment:
			b.WriteString("// " + st.text + "\n")
		case declare:
			fmt.Fprintf(b, "%s := %s\n", strings.Join(st.names, ", "), st.right)
		case set:
			op := " = "
			if st.text != "" {
				op = st.text
			}
			right, minus := strings.CutPrefix(st.right, "-")
			if op == " += " && minus && single(right) { // the compiler would negate first
				op = " -= "
			} else {
				right = st.right
			}

			fmt.Fprintf(b, "%s%s%s\n", strings.Join(st.names, ", "), op, right)
		case loop:
			switch {
			case st.right != "" && len(st.names) > 0:
				fmt.Fprintf(b, "for %s := range %s {\n", st.names[0], st.right)
			case st.right != "":
				fmt.Fprintf(b, "for range %s {\n", st.right)
			default:
				b.WriteString("for " + st.text + " {\n")
			}

			write(b, st.body)
			b.WriteString("}\n")
		case branch:
			writeBranch(b, st)
		case block:
			b.WriteString("{\n")
			write(b, st.body)
			b.WriteString("}\n" + st.text + ":\n")
		}
	}
}

// writeBranch appends an if statement.
func writeBranch(b *strings.Builder, st *stmt) {
	b.WriteString("if " + st.text + " {\n")
	write(b, st.body)
	switch {
	case len(st.els) == 0:
		b.WriteString("}\n")
	case len(st.els) == 1 && st.els[0].kind == branch:
		b.WriteString("} else ")
		writeBranch(b, st.els[0])
	default:
		b.WriteString("} else {\n")
		write(b, st.els)
		b.WriteString("}\n")
	}
}

// all iterates over statements and those inside them.
func all(list []*stmt) iter.Seq[*stmt] {
	return func(yield func(*stmt) bool) { visit(list, yield) }
}

// visit calls yield for each statement until it returns false.
func visit(list []*stmt, yield func(*stmt) bool) bool {
	for _, st := range list {
		if !yield(st) || !visit(st.body, yield) || !visit(st.els, yield) {
			return false
		}
	}

	return true
}

// size returns the number of statements.
func size(list []*stmt) (n int) {
	for range all(list) {
		n++
	}
	return n
}

// hasLoop reports whether a list contains a loop.
func hasLoop(list []*stmt) bool {
	for st := range all(list) {
		if st.kind == loop {
			return true
		}
	}
	return false
}

// reads counts how often each variable is read.
func reads(list []*stmt) map[string]int {
	of := map[string]int{}
	for st := range all(list) {
		st.reads(func(name string) { of[name]++ })
	}
	return of
}

// reads calls give for each variable that a statement reads, without the statements inside it.
func (st *stmt) reads(give func(name string)) {
	text := func(t string) {
		for from, name := range identifiers(t) {
			if from == 0 || t[from-1] != '.' { // not a field
				give(name)
			}
		}
	}

	switch st.kind {
	case comment:
		return
	case set:
		for _, n := range st.names {
			if strings.ContainsAny(n, ".[") {
				text(n)
			}
		}
	case line, branch, loop:
		text(st.text)
	}

	text(st.right)
}

// removeUnread removes variables that are never read, repeatedly.
func removeUnread(list []*stmt) []*stmt {
	for dropped := true; dropped; {
		dropped = false
		list = removeUnreadOnce(list, reads(list), &dropped)
	}

	return list
}

// removeUnreadOnce removes variables that reads does not contain, and sets dropped if it changed
// a statement.
func removeUnreadOnce(list []*stmt, reads map[string]int, dropped *bool) (kept []*stmt) {
	for _, st := range list {
		st.body, st.els = removeUnreadOnce(st.body, reads, dropped), removeUnreadOnce(st.els, reads, dropped)
		switch {
		case st.kind == declare || st.kind == set:
			unread := 0
			for i, n := range st.names {
				if n == "_" || !strings.ContainsAny(n, ".[") && reads[n] == 0 {
					unread++
					if n != "_" && len(st.names) > 1 {
						st.names[i], *dropped = "_", true
					}
				}
			}

			if unread < len(st.names) {
				break
			}
			if st.pure {
				*dropped = true
				continue
			}

			if st.names[0] != "_" || len(st.names) > 1 {
				*dropped = true
			}
			if strings.HasSuffix(st.right, ")") {
				st = &stmt{kind: line, text: st.right}
			} else {
				st.kind, st.names, st.text = set, []string{"_"}, ""
			}
		case st.kind == branch && onlyComments(st.body) && onlyComments(st.els) && st.pure:
			*dropped = true
			continue
		case st.kind == branch && onlyComments(st.body) && !onlyComments(st.els):
			st.text, st.body, st.els = "!("+st.text+")", st.els, nil
		case st.kind == loop && onlyComments(st.body) && st.pure:
			*dropped = true
			continue
		case st.kind == loop && len(st.names) > 0 && reads[st.names[0]] == 0:
			st.names, *dropped = nil, true
		}

		kept = append(kept, st)
	}

	return kept
}

// onlyComments reports whether a list has nothing but comments.
func onlyComments(list []*stmt) bool {
	return !slices.ContainsFunc(list, func(st *stmt) bool { return st.kind != comment })
}

// letter reports whether a byte can start a name; a byte outside ASCII can.
func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

// digit reports whether a byte is a decimal digit.
func digit(c byte) bool { return c >= '0' && c <= '9' }

// identifiers iterates over the names in a text and their positions.
func identifiers(text string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for from := 0; from < len(text); from++ {
			to := from
			for to < len(text) && (letter(text[to]) || digit(text[to])) {
				to++
			}
			if to > from && letter(text[from]) && !yield(from, text[from:to]) {
				return
			}
			from = max(from, to-1)
		}
	}
}

// calls matches a call in a text: the name, with its dots.
var calls = lazyRegexp(`([\pL_][\pL\pN_.]*)\(`)

// callNames returns the names of the calls in a text.
func callNames(text string) (names []string) {
	if !strings.Contains(text, "(") {
		return nil // most texts have none
	}
	for _, m := range calls().FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}
