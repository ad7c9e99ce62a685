// Package page serves a dataset to a browser on the same machine: `ebpfprof serve`.
//
// Two rules shape it. A trace is hostile input, and loopback is shared with other users: the server listens on loopback
// or on a socket of mode 0600, answers data only to who has the token, checks the Host header against DNS rebinding,
// sets no cookie, and lets the page load nothing from elsewhere. And a number on the page is a number of the command
// line: documents are written by the same code, and the timeline is tested against SQL.
package page
