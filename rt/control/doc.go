// Package control owns the requests to a run from outside: the control socket of a supervisor, and
// the commands that find, ask, list and end runs.
//
// The package does not know what a change means: scenario.Commands translates its line, and the
// loop applies it. A change crosses the status block (rt.StatusBlock.Post) and takes effect at one
// tick. Only its user and root can open a socket.
//
// A request is one line of words, quoted as a shell quotes them; the answer is one line of JSON, an
// Answer. The lines that change a run are those of scenario.Commands.Translate.
//
// Reading order: socket.go (where sockets are, Ask), control.go (Server, Answer), verbs.go (the
// requests), list.go (List, the runs of a host; targets without a supervisor), stop.go (Stop).
package control
