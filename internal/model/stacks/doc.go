// Package stacks reads the samples of a dataset into profiles, and names the
// frames of its stacks that had no symbols when they were recorded.
package stacks
