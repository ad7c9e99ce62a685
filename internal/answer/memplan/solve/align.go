package solve

import "fmt"

// Alignments of tensors' memory: what PyTorch asks of posix_memalign (c10's
// gAlignment), and what its CUDA allocator rounds to (kMinBlockSize).
const (
	AlignmentCPU  = 64
	AlignmentCUDA = 512
)

// Align rounds sizes up to multiples of an alignment, so that every offset that
// a solver finds is a multiple of it too.
func Align(blocks []Block, alignment int64) ([]Block, error) {
	if alignment <= 1 {
		return blocks, nil
	}
	aligned := make([]Block, len(blocks))
	for i, b := range blocks {
		if b.Size > MaxTotal-alignment {
			return nil, fmt.Errorf("block %d, size %d: %w", i, b.Size, ErrTooLarge)
		}
		b.Size = (b.Size + alignment - 1) / alignment * alignment
		aligned[i] = b
	}
	return aligned, nil
}

// AlignedOffsets checks that fixed offsets are multiples of an alignment.
func AlignedOffsets(fixed Fixed, alignment int64) error {
	for i, offset := range fixed {
		if alignment > 1 && offset%alignment != 0 {
			return fmt.Errorf("block %d is fixed at %d, which is no multiple of %d", i, offset, alignment)
		}
	}
	return nil
}
