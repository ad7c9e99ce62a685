// Package user lets what a recording starts beside the job run as somebody else than root.
package user

import (
	"fmt"
	"os"
	"os/exec"
	osuser "os/user"
	"strconv"
	"syscall"

	"github.com/ebpfprof/ebpfprof/internal/directory"
)

// User is who a program runs as.
type User struct {
	credential syscall.Credential
	home, name string
}

// Invoker is the user who called sudo, nil without sudo: what is started for somebody does not run as root.
func Invoker() *User {
	access := directory.Invoker()
	if access.UID <= 0 {
		return nil
	}
	u := &User{credential: syscall.Credential{Uid: uint32(access.UID), Gid: uint32(access.GID)}}
	known, err := osuser.LookupId(strconv.Itoa(access.UID))
	if err != nil {
		return u
	}
	u.home, u.name = known.HomeDir, known.Username
	groups, _ := known.GroupIds() // without them a file may be out of reach, which is reported then
	for _, g := range groups {
		if id, err := strconv.ParseUint(g, 10, 32); err == nil {
			u.credential.Groups = append(u.credential.Groups, uint32(id))
		}
	}
	return u
}

// Nobody is the user who owns nothing.
func Nobody() (*User, error) {
	known, err := osuser.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(known.Uid, 10, 32)
	if err != nil || uid == 0 {
		return nil, fmt.Errorf("user nobody has the id %q", known.Uid)
	}
	gid, err := strconv.ParseUint(known.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user nobody has the group %q", known.Gid)
	}
	return &User{credential: syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, home: "/", name: known.Username}, nil
}

// Name is the user's, or the number of one without a name.
func (u *User) Name() string {
	if u.name == "" {
		return strconv.FormatUint(uint64(u.credential.Uid), 10)
	}
	return u.name
}

// Group is the number of the user's own group, and its name, or the number again.
func (u *User) Group() (id int, name string) {
	name = strconv.FormatUint(uint64(u.credential.Gid), 10)
	if g, err := osuser.LookupGroupId(name); err == nil {
		name = g.Name
	}
	return int(u.credential.Gid), name
}

// On lets a command run as the user; nil is who we are.
func (u *User) On(command *exec.Cmd) {
	if u == nil {
		return
	}
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Credential = &u.credential
	if u.name != "" {
		command.Env = append(os.Environ(), "HOME="+u.home, "USER="+u.name, "LOGNAME="+u.name)
	}
}

// Apart is On without our environment, for a program that needs none of it: root's variables may hold credentials.
func (u *User) Apart(command *exec.Cmd) {
	if u == nil {
		return
	}
	u.On(command)
	command.Env = u.environment()
}

// kept are the variables of ours that are no secret, which a terminal, a browser and a cache directory need.
var kept = []string{"PATH", "TERM", "LANG", "LC_ALL", "TZ", "NO_COLOR", "TMPDIR", "DISPLAY", "WAYLAND_DISPLAY", "BROWSER"}

// environment is what such a program has.
func (u *User) environment() (variables []string) {
	for _, name := range kept {
		if value, set := os.LookupEnv(name); set {
			variables = append(variables, name+"="+value)
		}
	}
	if u.name != "" {
		variables = append(variables, "HOME="+u.home, "USER="+u.name, "LOGNAME="+u.name)
	}
	return variables
}
