package sinks

import (
	"errors"
	"reflect"
	"sync"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// failing is a disk that is full.
type failing struct{}

func (failing) Write(*event.Batch) error { return errors.New("full") }

// counting counts the rows of each table.
type counting map[string]int

func (c counting) Write(b *event.Batch) error {
	tables := reflect.ValueOf(b).Elem()
	for i := range tables.NumField() {
		c[tables.Type().Field(i).Name] += tables.Field(i).Len()
	}
	return nil
}

// oneOf is a batch with a row of one table.
func oneOf(table int) (name string, b *event.Batch) {
	b = &event.Batch{}
	rows := reflect.ValueOf(b).Elem().Field(table)
	rows.Set(reflect.MakeSlice(rows.Type(), 1, 1))
	return reflect.TypeFor[event.Batch]().Field(table).Name, b
}

// Whatever it is that a full disk does not take, the session goes on, and the other sinks get
// it: the worker of a job whose collectives were open once ended with its spool's disk.
func TestAFullDiskDoesNotTakeThePatternsWithIt(t *testing.T) {
	for table := range reflect.TypeFor[event.Batch]().NumField() {
		name, batch := oneOf(table)
		seen := counting{}
		if err := (Tee{failing{}, seen}).Write(batch); err == nil || seen[name] != 1 {
			t.Errorf("%s: %v, %v", name, err, seen)
		}
		disk := &Lenient{To: failing{}}
		if err := (Tee{disk, seen}).Write(batch); err != nil || seen[name] != 2 || disk.Failed == nil {
			t.Errorf("%s: %v, %v, %v", name, err, seen, disk.Failed)
		}
	}
}

// Every decorator hands on every table.
func TestNoTableIsForgotten(t *testing.T) {
	for table := range reflect.TypeFor[event.Batch]().NumField() {
		name, batch := oneOf(table)
		for _, of := range []struct {
			name string
			sink func(event.Sink) event.Sink
		}{
			{"lenient", func(to event.Sink) event.Sink { return &Lenient{To: to} }},
			{"locked", func(to event.Sink) event.Sink { return &Locked{To: Tee{to}} }},
			{"tee", func(to event.Sink) event.Sink { return Tee{event.Discard{}, to} }},
		} {
			seen := counting{}
			if err := of.sink(seen).Write(batch); err != nil || seen[name] != 1 {
				t.Errorf("%s: %s: %v, %v", of.name, name, err, seen)
			}
		}
	}
}

// Two goroutines hand events to one sink that takes them by turns.
func TestTurnsAreTaken(t *testing.T) {
	seen := counting{}
	l := &Locked{To: Tee{seen}}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			for range 1000 {
				if err := l.Write(&event.Batch{Spans: make([]event.Span, 1)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	both.Wait()
	if n := seen["Spans"]; n != 2000 {
		t.Errorf("%d of 2000", n)
	}
}
