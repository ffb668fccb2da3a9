// Package deploy owns what gets a box ready and proves it: what the host is fit for,
// what can be changed on it while it runs, and how late a loop is on it. It changes
// settings of the running kernel where a Plan is applied, each one named before and
// undone by Undo, and nothing else on the host.
package doctor
