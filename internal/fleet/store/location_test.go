package store

import (
	"errors"
	"strings"
	"testing"
)

func TestAddressesOfBuckets(t *testing.T) {
	none := func(string) string { return "" }
	environment := func(name string) string {
		return map[string]string{"AWS_ENDPOINT_URL": "http://127.0.0.1:7070", "AWS_REGION": "eu-1"}[name]
	}
	for _, c := range []struct {
		location string
		from     func(string) string
		want     address
	}{
		{"s3://profiles", none, address{amazon, "", "profiles", "", true}},
		{"s3://profiles/a/b/", none, address{amazon, "", "profiles", "a/b", true}},
		{"s3://profiles/../x?region=us-2", none, address{amazon, "us-2", "profiles", "x", true}},
		{"s3://profiles/x?endpoint=https://s.example.com", none, address{"s.example.com", "", "profiles", "x", true}},
		{"s3://profiles/x?endpoint=http://s.example.com:9000/", environment, address{"s.example.com:9000", "eu-1", "profiles", "x", false}},
		{"s3://profiles", environment, address{"127.0.0.1:7070", "eu-1", "profiles", "", false}},
	} {
		if got, err := parseBucket(c.location, c.from); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", c.location, got, err)
		}
	}
	for location, says := range map[string]string{
		"s3://":                            "names no bucket",
		"s3:///x":                          "names no bucket",
		"s3://b:80/x":                      "no port",
		"s3://b/x?endpoint=s.example.com":  "endpoint",
		"s3://b/x?endpoint=ftp://s":        "endpoint",
		"s3://b/x?endpoint=https://s/path": "endpoint",
		"s3://b/x?endpoint=https://u:p@s":  "endpoint",
		"s3://b/x?key=1":                   "unknown parameter key",
		"s3://AKIA:hunter2@b/x":            "credentials do not belong",
		"s3://b/%zz":                       "names no bucket",
	} {
		_, err := parseBucket(location, none)
		if !errors.Is(err, ErrLocation) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %s", location, err, says)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("an error tells the secret: %v", err)
		}
	}
}
