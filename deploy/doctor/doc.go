// Package doctor judges whether a host is fit for a loop, and makes it fitter: Examine checks
// it, NewPlan lists the settings of the running kernel that would help, Plan.Apply changes
// them, Undo restores them. Each change is shown before it is made.
//
// It writes nothing else: no file on a disk but the one for Undo, no command line of a kernel,
// no boot loader. It does not measure (package latency) and does not read the host's files by
// itself where others need them too (package hostinfo).
package doctor
