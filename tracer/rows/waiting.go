package rows

// waiting are rows that wait for something, each with the index of its probe. They lie in pieces of
// one size: a slice of all of them would be copied as it grows, and be kept whole until its
// last row has gone.
type waiting[T any] struct{ pieces [][]waitingRow[T] }

type waitingRow[T any] struct {
	row   T
	probe uint32
}

// pieceRows is how many rows a piece has.
const pieceRows = 512

// add adds a copy of a row.
func (w *waiting[T]) add(row *T, probe uint32) {
	last := len(w.pieces) - 1
	if last < 0 || len(w.pieces[last]) == pieceRows {
		w.pieces = append(w.pieces, make([]waitingRow[T], 0, pieceRows))
		last++
	}
	w.pieces[last] = append(w.pieces[last], waitingRow[T]{*row, probe})
}

// each looks at the rows in their order and lets go of those that are not to be kept, a piece at a time.
func (w *waiting[T]) each(look func(row *T, probe uint32) (keep bool)) {
	pieces := w.pieces
	w.pieces = nil
	for i, piece := range pieces {
		pieces[i] = nil
		for j := range piece {
			if r := &piece[j]; look(&r.row, r.probe) {
				w.add(&r.row, r.probe)
			}
		}
	}
}
