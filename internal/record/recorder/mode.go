package recorder

import (
	"fmt"
	"io/fs"
	"os/user"
	"strconv"
	"strings"

	"github.com/ebpfprof/ebpfprof/output"
)

// parseMode reads --mode: the files' mode in octal digits, and a group after a colon.
// Directories can be searched by those who may read.
func parseMode(s string) (output.Access, error) {
	digits, group, named := strings.Cut(s, ":")
	access := output.PrivateAccess()
	mode, err := strconv.ParseUint(digits, 8, 32)
	switch {
	case err != nil || mode&^0o666 != 0 || mode&0o600 != 0o600:
		return access, fmt.Errorf("--mode %q: give the files' mode, such as 0600, 0640 or 0644", s)
	case mode&0o002 != 0:
		return access, fmt.Errorf("--mode %q: a dataset that every user may write into is nobody's; choose 0644 or 0640:GROUP", s)
	}
	access.Mode = fs.FileMode(mode)
	if !named {
		return access, nil
	}
	g, err := user.LookupGroup(group)
	if err != nil {
		if g, err = user.LookupGroupId(group); err != nil {
			return access, fmt.Errorf("--mode %q: there is no group %q", s, group)
		}
	}
	if access.GID, err = strconv.Atoi(g.Gid); err != nil {
		return access, fmt.Errorf("--mode %q: the group's id is %q", s, g.Gid)
	}
	access.AnyOwner = false // the group was asked for
	return access, nil
}
