package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Bucket is a store in object storage that speaks S3's protocol.
type Bucket struct {
	client         *minio.Client
	server         string
	bucket, prefix string
}

// bucketScheme begins the address of a bucket.
const bucketScheme = "s3://"

// IsBucket reports whether a location is a bucket's, and no directory's.
func IsBucket(location string) bool { return strings.HasPrefix(location, bucketScheme) }

// ErrLocation is wrapped by what is wrong with the address of a bucket.
var ErrLocation = errors.New("no address of a bucket")

// address is where a bucket is.
type address struct {
	server, region, bucket, prefix string
	secure                         bool
}

// amazon is the server where nothing says another.
const amazon = "s3.amazonaws.com"

// parseBucket reads s3://BUCKET[/PREFIX][?endpoint=URL][&region=NAME]. The endpoint and
// the region are, where the address does not say, those of AWS_ENDPOINT_URL_S3,
// AWS_ENDPOINT_URL, AWS_REGION and AWS_DEFAULT_REGION.
func parseBucket(location string, environment func(string) string) (address, error) {
	bad := func(what string) (address, error) {
		return address{}, fmt.Errorf("%q is %w: %s: give s3://BUCKET/PREFIX?endpoint=https://HOST", location, ErrLocation, what)
	}
	u, err := url.Parse(location)
	switch {
	case err != nil || u.Scheme != "s3" || u.Host == "":
		return bad("it names no bucket")
	case u.User != nil:
		return address{}, fmt.Errorf("%w: credentials do not belong into it: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write "+
			"~/.aws/credentials", ErrLocation)
	case u.Port() != "":
		return bad("a bucket has no port")
	}
	a := address{bucket: u.Host, prefix: strings.Trim(path.Clean("/"+u.Path), "/"), server: amazon, secure: true}
	endpoint := ""
	for name, values := range u.Query() {
		switch name {
		case "endpoint":
			endpoint = values[0]
		case "region":
			a.region = values[0]
		default:
			return bad("unknown parameter " + name)
		}
	}
	first := func(to *string, names ...string) {
		for _, name := range names {
			if *to == "" {
				*to = environment(name)
			}
		}
	}
	first(&endpoint, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
	first(&a.region, "AWS_REGION", "AWS_DEFAULT_REGION")
	if endpoint == "" {
		return a, nil
	}
	e, err := url.Parse(endpoint)
	if err != nil || e.Host == "" || e.Scheme != "http" && e.Scheme != "https" || strings.Trim(e.Path, "/") != "" || e.User != nil {
		return bad("its endpoint is no https://HOST or http://HOST:PORT")
	}
	a.server, a.secure = e.Host, e.Scheme == "https"
	return a, nil
}

// ErrAway is wrapped by errors of a store that does not answer, or not as it should.
var ErrAway = errors.New("the store does not answer")

// retries of one request, within the caller's deadline.
const retries = 3

// newBucket sends nothing yet. The credentials are the environment's, else those of
// the user's file, else, on Amazon's machines, the machine's.
func newBucket(location string) (*Bucket, error) {
	a, err := parseBucket(location, os.Getenv)
	if err != nil {
		return nil, err
	}
	providers := []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}}
	if a.server == amazon {
		providers = append(providers, &credentials.IAM{})
	}
	client, err := minio.New(a.server, &minio.Options{
		Creds: credentials.NewChainCredentials(providers), Secure: a.secure, Region: a.region, MaxRetries: retries,
	})
	if err != nil {
		return nil, fmt.Errorf("opening the store %s: %w", location, err)
	}
	return &Bucket{client: client, server: a.server, bucket: a.bucket, prefix: a.prefix}, nil
}

// String is the bucket and what is in front of its keys.
func (b *Bucket) String() string { return bucketScheme + path.Join(b.bucket, b.prefix) }

func (b *Bucket) name(key string) string { return path.Join(b.prefix, key) }

// told makes a sentence of an error, which says what to do.
func (b *Bucket) told(doing string, err error) error {
	if err == nil {
		return nil
	}
	response := minio.ToErrorResponse(err)
	switch response.Code {
	case minio.NoSuchKey:
		return fmt.Errorf("%s: %w", doing, fs.ErrNotExist)
	case minio.NoSuchBucket:
		return fmt.Errorf("%s: %s has no bucket %q: make it first", doing, b.server, b.bucket)
	case minio.AccessDenied, minio.InvalidAccessKeyID, minio.SignatureDoesNotMatch, "InvalidToken", "ExpiredToken":
		return fmt.Errorf("%s: %s refuses the credentials (%s): are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY set, or ~/.aws/credentials?",
			doing, b.server, response.Code)
	}
	var address *url.Error
	if errors.As(err, &address) {
		err = address.Err // without the signed address
	}
	return fmt.Errorf("%s: %w: %s: %w", doing, ErrAway, b.server, err)
}

// Put implements Store: an object is there whole, or not at all.
func (b *Bucket) Put(ctx context.Context, key string, content []byte) error {
	_, err := b.client.StatObject(ctx, b.bucket, b.name(key), minio.StatObjectOptions{})
	if err == nil {
		return nil // the key has the content's hash
	}
	if minio.ToErrorResponse(err).Code != minio.NoSuchKey {
		return b.told("writing to the store", err)
	}
	return b.Replace(ctx, key, content)
}

// Replace is Put of a key that may be there: then it has the new content.
func (b *Bucket) Replace(ctx context.Context, key string, content []byte) error {
	_, err := b.client.PutObject(ctx, b.bucket, b.name(key), bytes.NewReader(content), int64(len(content)),
		minio.PutObjectOptions{ContentType: "application/vnd.apache.parquet", DisableMultipart: true})
	return b.told("writing to the store", err)
}

// Create is Put of a key that is free: ErrTaken if it is not. A server may say so of what
// it has taken itself, where its first answer was lost. One that refuses before it has read
// a large object closes the connection, which may cut off its answer: then the key tells.
func (b *Bucket) Create(ctx context.Context, key string, content []byte) error {
	options := minio.PutObjectOptions{DisableMultipart: true}
	options.SetMatchETagExcept("*")
	_, err := b.client.PutObject(ctx, b.bucket, b.name(key), bytes.NewReader(content), int64(len(content)), options)
	if err == nil {
		return nil
	}
	response := minio.ToErrorResponse(err)
	taken := response.Code == minio.PreconditionFailed || response.Code == conflict
	if !taken && response.StatusCode == 0 { // no answer
		_, missing := b.client.StatObject(ctx, b.bucket, b.name(key), minio.StatObjectOptions{})
		taken = missing == nil
	}
	if taken {
		return fmt.Errorf("%s is %w", key, ErrTaken)
	}
	return b.told("writing to the store", err)
}

// conflict is the answer to two conditional writes of one key at once.
const conflict = "ConditionalRequestConflict"

// Remove takes an object out, if it is there.
func (b *Bucket) Remove(ctx context.Context, key string) error {
	err := b.client.RemoveObject(ctx, b.bucket, b.name(key), minio.RemoveObjectOptions{})
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return nil
	}
	return b.told("removing from the store", err)
}

// Get implements Store.
func (b *Bucket) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	object, err := b.client.GetObject(ctx, b.bucket, b.name(key), minio.GetObjectOptions{})
	if err != nil {
		return nil, b.told("reading the store", err)
	}
	if _, err := object.Stat(); err != nil { // the request is made when it is first asked for something
		return nil, errors.Join(b.told("reading the store", err), object.Close())
	}
	return object, nil
}

// List implements Store.
func (b *Bucket) List(ctx context.Context, prefix string) (keys []string, err error) {
	entries, err := b.entries(ctx, prefix)
	for _, e := range entries {
		keys = append(keys, e.Key)
	}
	return keys, err
}

// entries are the objects below a prefix, in order of their keys. Whoever may write into
// the bucket chooses names: those that lead out of the prefix are left out.
func (b *Bucket) entries(ctx context.Context, prefix string) (all []Entry, err error) {
	// A listing goes on until the context is done, whoever stopped reading it.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cut := ""
	if b.prefix != "" {
		cut = b.prefix + "/"
	}
	for object := range b.client.ListObjectsIter(ctx, b.bucket, minio.ListObjectsOptions{Prefix: cut + prefix, Recursive: true}) {
		if object.Err != nil {
			return nil, b.told("listing the store", object.Err)
		}
		key := strings.TrimPrefix(object.Key, cut)
		if !fs.ValidPath(key) || strings.HasPrefix(path.Base(key), ".") {
			continue
		}
		all = append(all, Entry{Key: key, Bytes: object.Size})
	}
	return all, nil
}

// Partitions are the names one level below a prefix, which ends with a slash.
func (b *Bucket) Partitions(ctx context.Context, prefix string) (names []string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	within := b.name(prefix) + "/"
	for object := range b.client.ListObjectsIter(ctx, b.bucket, minio.ListObjectsOptions{Prefix: within}) {
		if object.Err != nil {
			return nil, b.told("listing the store", object.Err)
		}
		if name, is := strings.CutSuffix(strings.TrimPrefix(object.Key, within), "/"); is && fs.ValidPath(name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// first reports whether there is an object of this version of the store.
func (b *Bucket) first(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for object := range b.client.ListObjectsIter(ctx, b.bucket, minio.ListObjectsOptions{Prefix: b.name(Version) + "/", Recursive: true,
		MaxKeys: 1}) {
		return object.Err == nil, b.told("opening the store", object.Err)
	}
	return false, nil
}
