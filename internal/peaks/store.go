package peaks

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ebpfprof/ebpfprof/internal/directory"
)

const fileName = "peaks.json"

// cachePath is where the measurement of this machine is kept.
func cachePath() (string, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(user, "ebpfprof"), nil
}

// Save keeps a measurement for reports of recordings of this machine.
func (m Measured) Save() error {
	path, err := cachePath()
	if err != nil {
		return fmt.Errorf("keeping the measured peaks: %w", err)
	}
	d, err := directory.MakeCache(path)
	if err != nil {
		return fmt.Errorf("keeping the measured peaks: %w", err)
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err == nil {
		err = d.Write(fileName, "."+fileName, text)
	}
	return errors.Join(err, d.Close())
}

// Saved is the measurement of a processor of that name, if Save was called on a
// machine with one. A file that cannot be read is none.
func Saved(processor string) (Measured, bool) {
	var m Measured
	path, err := cachePath()
	if err != nil {
		return m, false
	}
	text, err := os.ReadFile(filepath.Join(path, fileName))
	if err != nil || json.Unmarshal(text, &m) != nil || m.FLOPs <= 0 || m.Bytes <= 0 {
		return Measured{}, false
	}
	return m, m.Processor == processor
}
