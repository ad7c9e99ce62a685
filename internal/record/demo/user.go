package demo

import (
	"os"
	"os/exec"
	osuser "os/user"
	"strconv"
	"syscall"

	"github.com/ebpfprof/ebpfprof/internal/directory"
)

// user is who the job belongs to.
type user struct {
	credential syscall.Credential
	home, name string
}

// invoker is the user who called sudo, nil without sudo: what the demo starts for somebody does not run as root.
func invoker() *user {
	access := directory.Invoker()
	if access.UID <= 0 {
		return nil
	}
	u := &user{credential: syscall.Credential{Uid: uint32(access.UID), Gid: uint32(access.GID)}}
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

// on lets a command run as the user.
func (u *user) on(command *exec.Cmd) {
	if u == nil {
		return
	}
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &u.credential}
	if u.name != "" {
		command.Env = append(os.Environ(), "HOME="+u.home, "USER="+u.name, "LOGNAME="+u.name)
	}
}
