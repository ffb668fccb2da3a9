// Package control owns the requests to a run from outside: the control socket of a supervisor, and
// the commands that find, ask, list and end runs.
//
// The package does not know what a change means: scenario.Commands translates its line, and the
// loop applies it. A change crosses the status block (rt.StatusBlock.Post) and takes effect at one
// tick. Only its user and root can open a socket.
//
// Root's commands meet processes, names, folders and sockets of any user, who may have made them to
// mislead or block root. So a descriptor of a target is opened only if it is sealed memory of the
// user of that process, and the hand-over of another user is decoded only if root names the process.
// A socket counts only if its folder, its file and its listener are one user's.
//
// A request is one line of words, quoted as a shell quotes them; the answer is one line of JSON, an
// Answer. The lines that change a run are those of scenario.Commands.Translate.
//
// Reading order: socket.go (where sockets are, Ask), control.go (Server, Answer), verbs.go (the
// requests), list.go (List, the runs of a host), target.go (target processes, FindOrphan, OpenTarget),
// stop.go (Stop).
package control
