// Package rooms holds the order of this project's packages: its tests fail when
// an import runs back up, or when what reads a dataset begins to need the loader.
package rooms
