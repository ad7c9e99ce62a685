// Package redact leaves out of a recording what says who ran it, where, and with which
// arguments, before any of it is written: command lines, directories, the host's name,
// control groups and containers. What a profile is made of stays: names of functions,
// operators, scopes, kernels, threads, programs and files. docs/security.md has the list.
package redact

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"regexp"
	"strings"

	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// systems are directories that are the same on every machine.
var systems = []string{"/usr/", "/lib/", "/lib32/", "/lib64/", "/bin/", "/sbin/", "/proc/", "/sys/", "/dev/"}

// Path drops the directories of a path: all of them, or those above where Python or
// its packages are installed; what belongs to the system is left as it is.
func Path(p string) string {
	if !strings.Contains(p, "/") {
		return p
	}
	clean := path.Clean(p)
	for _, system := range systems {
		if strings.HasPrefix(clean, system) {
			return clean
		}
	}
	return symbolize.ShortPath(clean)
}

// absolute is a path in a text: what follows is a character that ends one.
var absolute = regexp.MustCompile(`/[^\s"'(),;\[\]<>]*[^\s"'(),;\[\]<>:.]`)

// Text is Path for every absolute path in a text.
func Text(s string) string {
	if !strings.Contains(s, "/") {
		return s
	}
	var b strings.Builder
	for rest := s; ; {
		at := absolute.FindStringIndex(rest)
		if at == nil {
			return b.String() + rest
		}
		b.WriteString(rest[:at[0]])
		found := rest[at[0]:at[1]]
		if at[0] > 0 && !startsPath(rest[at[0]-1]) { // and/or, KiB/s
			b.WriteString(found)
		} else {
			b.WriteString(Path(found))
		}
		rest = rest[at[1]:]
	}
}

// startsPath are the characters that a path comes after.
func startsPath(before byte) bool { return strings.IndexByte(" \t\n\"'(),;[]<>=:|&@", before) >= 0 }

// Pseudonym stands for a name: the same for the same one, so that rows still join. It
// does not keep somebody who guesses the name from finding that out.
func Pseudonym(name string) string {
	if name == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("ebpfprof\x00" + name))
	return "redacted-" + hex.EncodeToString(sum[:6])
}

func pseudonym(name *string) *string {
	if name == nil {
		return nil
	}
	p := Pseudonym(*name)
	return &p
}

// left stands for what a command line said.
const left = "[redacted]"

// namingFlags are this tool's flags whose value is a path, or says which job was recorded.
var namingFlags = map[string]bool{"--output": true, "-o": true, "--command": true, "--container": true}

// CommandLine keeps the flags of this tool, which say how a recording was made, and
// drops where it was written to and which job was recorded.
func CommandLine(args []string) []string {
	var kept []string
	for i := 0; i < len(args); i++ {
		name, value, assigned := strings.Cut(args[i], "=")
		switch {
		case args[i] == "--":
			return append(kept, "--", left)
		case i == 0:
			kept = append(kept, path.Base(args[i]))
		case namingFlags[name] || namingFlags["-"+name]: // the library takes one dash for two
			if assigned {
				kept = append(kept, name+"="+left)
			} else {
				kept = append(kept, name, left)
				i++
			}
		case assigned:
			kept = append(kept, name+"="+Path(value))
		default:
			kept = append(kept, Path(args[i]))
		}
	}
	return kept
}

// Recording leaves out the host's name, and says that it did. Its command line is
// CommandLine's business.
func Recording(r event.Recording) event.Recording {
	r.Host, r.Redacted = "", true
	return r
}

// Process leaves out arguments, directories, container and control group; a job's name
// becomes a pseudonym.
func Process(p event.Process) event.Process {
	p.Exe, p.Command = path.Base(p.Exe), ""
	if p.Exe == "." {
		p.Exe = ""
	}
	p.ContainerID, p.Cgroup, p.JobID = nil, nil, pseudonym(p.JobID)
	return p
}
