package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"nomadlike/internal/secretfile"
	"nomadlike/nomadlike/client/data"
)

// objects is a dataset in an object store.
type objects struct {
	server  Server
	dataset Dataset
	origin  string
	connect *http.Transport
	core    *minio.Core
}

func openS3(server Server, base *url.URL, dataset Dataset) (Source, error) {
	keys := credentials.NewStatic("", "", "", credentials.SignatureAnonymous)
	if name := server.S3.CredentialsFile; name != "" {
		if err := secretfile.Check(name); err != nil {
			return nil, err
		}
		keys = credentials.NewFileAWSCredentials(name, server.S3.Profile)
	}
	connect, err := transport(&server, base)
	if err != nil {
		return nil, err
	}
	options := &minio.Options{
		Creds: keys, Secure: base.Scheme == "https", Transport: connect, Region: server.S3.Region,
		MaxRetries: 1, // ranged and repeat ask again, and know what has come
	}
	if options.Region == "" {
		options.Region = RegionDefault
	}
	if server.S3.PathStyle {
		options.BucketLookup = minio.BucketLookupPath
	}
	core, err := minio.NewCore(base.Host, options)
	if err != nil {
		return nil, err
	}
	origin := base.Scheme + "://" + base.Host + "/" + server.S3.Bucket + "/" + dataset.Path
	return &objects{server: server, dataset: dataset, origin: origin, connect: connect, core: core}, nil
}

// Close implements Source.
func (o *objects) Close() { o.connect.CloseIdleConnections() }

// List implements data.Source.
func (o *objects) List(ctx context.Context) (*data.Listing, error) {
	var files []data.File
	err := repeat(ctx, &o.server, func(ctx context.Context, alive func()) (err error) {
		if o.dataset.Single {
			files, err = o.single(ctx)
		} else {
			files, err = o.below(ctx, alive)
		}
		return o.explain(err)
	})
	if err == nil && !o.dataset.Single {
		err = o.sums(ctx, files)
	}
	if err != nil {
		return nil, fmt.Errorf("list dataset: %w", err)
	}
	return bounded(&o.server, o.origin, files)
}

// single looks at the one object of a dataset.
func (o *objects) single(ctx context.Context) ([]data.File, error) {
	object, err := o.core.StatObject(ctx, o.server.S3.Bucket, o.dataset.Path, minio.StatObjectOptions{})
	if err != nil {
		return nil, err
	}
	return []data.File{{Path: path.Base(o.dataset.Path), Size: object.Size, Tag: object.ETag, SHA256: o.dataset.SHA256}}, nil
}

// below lists the objects of a dataset, page by page.
func (o *objects) below(ctx context.Context, alive func()) ([]data.File, error) {
	prefix := o.dataset.Path + "/"
	var files []data.File
	for object := range o.core.ListObjectsIter(ctx, o.server.S3.Bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if object.Err != nil {
			return nil, object.Err
		}
		alive()
		name := strings.TrimPrefix(object.Key, prefix)
		if strings.HasSuffix(object.Key, "/") && object.Size == 0 {
			continue // stands for a directory
		}
		if len(files) == data.SourceFilesMax {
			return nil, lasting{fmt.Errorf("more than %d files", data.SourceFilesMax)}
		}
		files = append(files, data.File{Path: name, Size: object.Size, Tag: object.ETag})
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no object begins with %s: %w", prefix, fs.ErrNotExist)
	}
	return files, nil
}

// sums takes over what a list of digests beside the objects says, if there is
// one.
func (o *objects) sums(ctx context.Context, files []data.File) error {
	for i := range files {
		if files[i].Path != o.server.List {
			continue
		}
		if files[i].Size > listBytesMax {
			return fmt.Errorf("%s has more than %d bytes", o.server.List, listBytesMax)
		}
		body, err := o.Open(ctx, &files[i], 0, files[i].Size)
		if err != nil {
			return err
		}
		defer body.Close()
		text, err := io.ReadAll(body)
		if err != nil {
			return err
		}
		told, err := ParseList(text)
		if err != nil {
			return fmt.Errorf("%s: %w", o.server.List, err)
		}
		return match(files, told)
	}
	return nil
}

// match adds to files the digests that are told of them. One that is told of and
// not there is an error: part of a dataset is not the dataset.
func match(files, told []data.File) error {
	at := make(map[string]int, len(files))
	for i := range files {
		at[files[i].Path] = i
	}
	for _, one := range told {
		i, ok := at[one.Path]
		if !ok {
			return fmt.Errorf("%s is in the list: %w", one.Path, fs.ErrNotExist)
		}
		files[i].SHA256 = one.SHA256
	}
	return nil
}

// Open implements data.Source.
func (o *objects) Open(ctx context.Context, f *data.File, offset, length int64) (io.ReadCloser, error) {
	open := func(ctx context.Context, offset, length int64) (io.ReadCloser, error) {
		return o.part(ctx, f, offset, length)
	}
	return &ranged{ctx: ctx, open: open, stall: o.server.StallMax, wait: o.server.Wait, at: offset, end: offset + length}, nil
}

// part asks for a part of an object, of the version that was listed.
func (o *objects) part(ctx context.Context, f *data.File, offset, length int64) (io.ReadCloser, error) {
	var options minio.GetObjectOptions
	if err := errors.Join(options.SetRange(offset, offset+length-1), options.SetMatchETag(f.Tag)); err != nil {
		return nil, lasting{err}
	}
	key := o.dataset.Path
	if !o.dataset.Single {
		key = path.Join(key, f.Path)
	}
	body, object, header, err := o.core.GetObject(ctx, o.server.S3.Bucket, key, options)
	if err != nil {
		err = o.explain(err)
		if errors.Is(err, fs.ErrNotExist) {
			err = data.ErrChanged // it was there
		}
		return nil, err
	}
	first, last, total, ok := contentRange(&http.Response{Header: header})
	switch {
	case object.ETag != f.Tag, ok && total != f.Size:
		err = data.ErrChanged
	case !ok || first != offset || last != offset+length-1:
		err = lasting{fmt.Errorf("%s: the store gives another part than was asked for", f.Path)}
	}
	if err != nil {
		body.Close()
		return nil, err
	}
	return body, nil
}

// explain says what a store's answer means for a copy.
func (o *objects) explain(err error) error {
	if err == nil || hopeless(err) {
		return err
	}
	answer := minio.ToErrorResponse(err)
	switch code := answer.StatusCode; {
	case code == http.StatusPreconditionFailed, code == http.StatusRequestedRangeNotSatisfiable:
		return data.ErrChanged
	case code == http.StatusNotFound:
		return fmt.Errorf("%s: %w", answer.Code, fs.ErrNotExist)
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code >= 500, code == 0:
		return plain(err)
	case answer.Message != "" && answer.Code != "":
		return lasting{fmt.Errorf("the store answers %d %s: %s", code, answer.Code, answer.Message)}
	}
	return lasting{fmt.Errorf("the store answers %d %s", answer.StatusCode, answer.Code)}
}
