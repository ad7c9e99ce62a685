package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

//go:embed guest.sh
var guestScript []byte

// result is what one command printed in a guest.
type result struct {
	name   string // the check's
	output string
	code   int
	ended  bool
}

// boot is one run of a guest.
type boot struct {
	release  string
	results  []result
	unwell   []string // what the guest's kernel complained of
	took     time.Duration
	console  string
	complete bool
}

// errDied: the guest did not come to its end.
var errDied = errors.New("the guest did not come to its end")

// machine is how a kernel is run: emulated, without KVM, with one CPU. qemu 7.2
// spoils the flags of cmpxchg16b, and with two CPUs the other may see the kernel's
// patching of its own text halfway.
type machine struct {
	directory string
	megabytes int
	limit     time.Duration
}

// run boots an image with an initramfs and runs commands in it. Emulation kills a
// guest now and then, so a guest that dies is booted once more.
func (m *machine) run(k kernel, image, base string, commands []string) (*boot, error) {
	b, err := m.try(k, image, base, commands)
	if errors.Is(err, errDied) {
		fmt.Printf("matrix: %s: %v; once more\n", k.name, err)
		b, err = m.try(k, image, base, commands)
	}
	return b, err
}

func (m *machine) try(k kernel, image, base string, commands []string) (*boot, error) {
	initramfs := filepath.Join(m.directory, "initramfs-"+k.name)
	defer os.Remove(initramfs)
	if err := joinArchives(initramfs, base, commands); err != nil {
		return nil, fmt.Errorf("making the guest's files: %w", err)
	}
	console := filepath.Join(m.directory, "console-"+k.name)
	program, arguments := "qemu-system-x86_64", []string{"-machine", "pc", "-cpu", "max,-cx16"}
	tty := "ttyS0"
	if k.arch == "arm64" {
		program, arguments = "qemu-system-aarch64", []string{"-machine", "virt", "-cpu", "max,pauth-impdef=on"}
		tty = "ttyAMA0"
	}
	arguments = append(arguments, "-accel", "tcg", "-smp", "1", "-m", strconv.Itoa(m.megabytes), "-kernel", image, "-initrd", initramfs,
		"-append", "console="+tty+" loglevel=4 panic=-1 oops=panic nokaslr mitigations=off random.trust_cpu=on",
		"-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio", "-no-reboot")
	ctx, cancel := context.WithTimeout(context.Background(), m.limit)
	defer cancel()
	out, err := os.Create(console)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	command := exec.CommandContext(ctx, program, arguments...)
	var complaint bytes.Buffer
	command.Stdout, command.Stderr = out, &complaint
	began := time.Now()
	runErr := command.Run()
	text, err := os.ReadFile(console)
	if err != nil {
		return nil, err
	}
	b := readConsole(string(text), len(commands))
	b.took, b.console = time.Since(began), console
	if !b.complete {
		why := "it stopped"
		if ctx.Err() != nil {
			why = fmt.Sprintf("it took more than %s", m.limit)
		} else if runErr != nil {
			why = fmt.Sprintf("%v %s", runErr, bytes.TrimSpace(complaint.Bytes()))
		}
		return b, fmt.Errorf("%w: %s; console: %s", errDied, why, console)
	}
	return b, nil
}

// joinArchives puts the commands behind the base: the kernel unpacks one archive
// after the other.
func joinArchives(to, base string, commands []string) error {
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	in, err := os.Open(base)
	if err != nil {
		return err
	}
	defer in.Close()
	n, err := io.Copy(out, in)
	if err != nil {
		return err
	}
	if _, err := out.Write(make([]byte, (4-n%4)%4)); err != nil {
		return err
	}
	a := newArchive(out)
	a.entry("commands", modeFile|0o644, []byte(strings.Join(commands, "\n")+"\n"))
	return a.end()
}

// readConsole finds what each command printed between the marks of guest.sh.
func readConsole(console string, commands int) *boot {
	b := &boot{results: make([]result, commands)}
	at := -1
	for line := range strings.Lines(console) {
		line = strings.TrimRight(line, "\r\n")
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "@@" {
			if at >= 0 {
				b.results[at].output += line + "\n"
			}
			continue
		}
		switch n := -1; words[1] {
		case "boot":
			b.release = strings.Join(words[2:min(3, len(words))], " ")
		case "begin", "end":
			if len(words) > 2 {
				n, _ = strconv.Atoi(words[2])
			}
			if n < 0 || n >= commands {
				continue
			}
			at = n
			if words[1] == "end" && len(words) == 4 {
				b.results[n].code, _ = strconv.Atoi(words[3])
				b.results[n].ended, at = true, -1
			}
		case "dmesg":
			b.unwell = append(b.unwell, strings.Join(words[2:], " "))
		case "off":
			b.complete = true
		}
	}
	return b
}
