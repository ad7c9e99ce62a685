// Package badinput holds the tests of what can go wrong at the command line:
// each drives the built binary as a user does, and checks that it ends with one
// clear sentence and its documented exit code, leaves nothing half-made behind,
// and does the job no harm.
package badinput
