// Package rooms holds the rules about this project's packages: its tests fail when a package
// reaches one that it must not depend on, or when docs name what does not exist.
package rooms
