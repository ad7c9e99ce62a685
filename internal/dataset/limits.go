package dataset

import "fmt"

// Limits bound the memory, threads and disk that DuckDB may use for a dataset; 0 is DuckDB's default. A program that
// answers several clients at once needs them: by default one query may take four fifths of the machine's memory.
type Limits struct {
	MemoryBytes int64
	SpillBytes  int64
	Threads     int
}

// settings are the statements that set the limits.
func (l Limits) settings() (statements []string) {
	if l.MemoryBytes > 0 {
		statements = append(statements, fmt.Sprintf("SET memory_limit = '%d B'", l.MemoryBytes))
	}
	if l.SpillBytes > 0 {
		statements = append(statements, fmt.Sprintf("SET max_temp_directory_size = '%d B'", l.SpillBytes))
	}
	if l.Threads > 0 {
		statements = append(statements, fmt.Sprintf("SET threads = %d", l.Threads))
	}
	return statements
}
