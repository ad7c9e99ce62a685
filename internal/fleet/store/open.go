package store

import (
	"context"
	"fmt"
	"time"
)

// patience is how long a bucket may take to answer when it is opened.
const patience = 20 * time.Second

// Create opens a store for writing: s3://BUCKET/PREFIX, or a directory, which is made if
// it does not exist.
func Create(location string) (Store, error) {
	if IsBucket(location) {
		return newBucket(location)
	}
	return NewDirectory(location)
}

// Open opens a store for reading. ErrNoStore where there is none.
func Open(ctx context.Context, location string) (Store, error) {
	if !IsBucket(location) {
		return OpenDirectory(location)
	}
	b, err := newBucket(location)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	keys, err := b.first(limited)
	if err != nil {
		return nil, err
	}
	if !keys {
		return nil, fmt.Errorf("%s is %w: no key in it begins with %s/", b, ErrNothingYet, Version)
	}
	return b, nil
}
