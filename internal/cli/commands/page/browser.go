package page

import (
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// openBrowser opens the address by way of a file that only this user can read: the arguments of a program are visible
// to every user of the machine, and the address has the token. remove deletes the file.
func openBrowser(address string) (remove func(), err error) {
	dir, err := os.MkdirTemp("", "ebpfprof-page-") // 0700
	if err != nil {
		return func() {}, err
	}
	remove = func() { os.RemoveAll(dir) }
	file := filepath.Join(dir, "open.html")
	text := fmt.Sprintf("<!doctype html><meta charset=utf-8><meta http-equiv=refresh content=\"0; url=%s\"><title>ebpfprof</title>",
		html.EscapeString(address))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return remove, err
	}
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	}
	command := exec.Command(program, file)
	if err := command.Start(); err != nil {
		return remove, err
	}
	go func() { _ = command.Wait() }() // it may stay as long as the browser
	return remove, nil
}
