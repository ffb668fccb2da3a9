package specialise

import (
	"regexp"
	"strings"
)

// masked is an index that begins with a variable and its mask.
var masked = regexp.MustCompile(`\[(\pL[\pL\pN_]*) ?& ?(\d+)( ?\+ ?[^\[\]&|^*/<>%-]+)?\]`)

// hoisted masks variables before the loop that does not change them: the compiler would do so
// in every turn.
func (f *frame) hoisted(list []*stmt) (out []*stmt) {
	for _, st := range list {
		if st.kind == loop {
			changed, names := map[string]bool{}, map[string]string{}
			changes([]*stmt{st}, changed)
			each([]*stmt{st}, func(text string) string {
				return masked.ReplaceAllStringFunc(text, func(index string) string {
					m := masked.FindStringSubmatch(index)
					if changed[m[1]] {
						return index
					}
					key := m[1] + " & " + m[2]
					if names[key] == "" {
						names[key] = f.unique(m[1])
						out = append(out, &stmt{kind: declare, names: []string{names[key]}, right: key, pure: true})
					}
					return "[" + names[key] + m[3] + "]"
				})
			})
		}
		st.body, st.els = f.hoisted(st.body), f.hoisted(st.els)
		out = append(out, st)
	}
	return out
}

// changes notes the variables that statements declare or assign to.
func changes(list []*stmt, changed map[string]bool) {
	for _, st := range list {
		for _, n := range st.names {
			changed[n] = true
		}
		if _, post, found := strings.Cut(strings.TrimPrefix(st.text, "; "), "; "); st.kind == loop && found {
			name, _, _ := strings.Cut(post, " ")
			changed[name] = true
		}
		changes(st.body, changed)
		changes(st.els, changed)
	}
}

// each rewrites the texts of statements.
func each(list []*stmt, rewrite func(string) string) {
	for _, st := range list {
		if st.kind == comment {
			continue
		}
		st.text, st.right = rewrite(st.text), rewrite(st.right)
		for i := range st.names {
			st.names[i] = rewrite(st.names[i])
		}
		each(st.body, rewrite)
		each(st.els, rewrite)
	}
}
