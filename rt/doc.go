// Package rt owns the loop: receive, step, send on the grid, the policy for
// missed ticks, and the page of counters that another process reads. It does
// not open, parse, name or print anything: all of that is done before the first
// tick, elsewhere.
package rt
