package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// extractImage writes the kernel that a package has to a file that qemu boots.
func extractImage(deb, to string) error {
	var image []byte
	err := eachFile(deb, func(h *tar.Header, r io.Reader) (err error) {
		if strings.HasPrefix(path.Base(h.Name), "vmlinuz") && h.Typeflag == tar.TypeReg { // in /boot, or with the modules
			image, err = io.ReadAll(r)
		}
		return err
	})
	if err != nil {
		return err
	}
	if image == nil {
		return fmt.Errorf("%s has no kernel image", deb)
	}
	if image, err = unpackImage(image); err != nil {
		return fmt.Errorf("unpacking the kernel image of %s: %w", deb, err)
	}
	return os.WriteFile(to, image, 0o644)
}

// unpackImage takes the kernel out of an EFI program that only decompresses it
// (drivers/firmware/efi/libstub/zboot-header.S): arm64's since 6.1x, which qemu does
// not open before 8.0. Others are left as they are.
func unpackImage(image []byte) ([]byte, error) {
	if len(image) < 64 || string(image[:2]) != "MZ" || string(image[4:8]) != "zimg" {
		return image, nil
	}
	at, size := binary.LittleEndian.Uint32(image[8:]), binary.LittleEndian.Uint32(image[12:])
	if uint64(at)+uint64(size) > uint64(len(image)) {
		return nil, errors.New("it is shorter than it says")
	}
	packed := image[at : at+size]
	switch kind, _, _ := bytes.Cut(image[24:56], []byte{0}); string(kind) {
	case "gzip":
		r, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(r)
	case "zstd22", "zstd":
		d, err := zstd.NewReader(bytes.NewReader(packed))
		if err != nil {
			return nil, err
		}
		defer d.Close()
		unpacked, err := io.ReadAll(d)
		if errors.Is(err, zstd.ErrMagicMismatch) && len(unpacked) > 0 {
			err = nil // the size that follows the last frame
		}
		return unpacked, err
	default:
		return nil, fmt.Errorf("it is compressed by %s", kind)
	}
}
