//go:build long

package c99_test

// breadth has the tests do what takes too long for every day.
const breadth = true
