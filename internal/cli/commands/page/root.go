package page

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"

	"github.com/ebpfprof/ebpfprof/internal/cli"
)

// leaveRoot makes this process the user's who called sudo: the page reads a job's files on a request of a browser, and
// no part of that needs root. Plain root has to ask for it.
func leaveRoot(allowed bool) error {
	if os.Geteuid() != 0 || allowed {
		return nil
	}
	uid, err := strconv.Atoi(os.Getenv("SUDO_UID"))
	if err != nil || uid <= 0 {
		return cli.WithCode(cli.ExitNotPermitted, errors.New("serve does not run as root: run it as the user who recorded, or with --allow-root"))
	}
	if err := become(uid); err != nil {
		return cli.Failed(fmt.Errorf("becoming user %d, who called sudo: %w", uid, err))
	}
	return nil
}

func become(uid int) error {
	who, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(who.Gid)
	if err != nil {
		return fmt.Errorf("group %q: %w", who.Gid, err)
	}
	names, err := who.GroupIds()
	if err != nil {
		return err
	}
	var groups []int
	for _, name := range names {
		if id, err := strconv.Atoi(name); err == nil {
			groups = append(groups, id)
		}
	}
	// The user last: without root the groups cannot be changed.
	if err := errors.Join(syscall.Setgroups(groups), syscall.Setgid(gid), syscall.Setuid(uid)); err != nil {
		return err
	}
	if os.Geteuid() != uid || syscall.Setuid(0) == nil {
		return errors.New("root's rights are still there")
	}
	return os.Setenv("HOME", who.HomeDir)
}
