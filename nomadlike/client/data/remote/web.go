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
	"strconv"
	"strings"

	"nomadlike/internal/secretfile"
	"nomadlike/nomadlike/client/data"
)

// web is a dataset on a web server.
type web struct {
	server        Server
	base          *url.URL
	dataset       Dataset
	client        *http.Client
	authorization string
}

func openHTTP(server Server, base *url.URL, dataset Dataset) (Source, error) {
	w := &web{server: server, base: base, dataset: dataset}
	if server.AuthorizationFile != "" {
		secret, err := secretfile.Read(server.AuthorizationFile)
		if err != nil {
			return nil, err
		}
		w.authorization = strings.TrimSpace(secret)
	}
	connect, err := transport(&server, base)
	if err != nil {
		return nil, err
	}
	w.client = &http.Client{Transport: connect, CheckRedirect: redirects(&server, base)}
	return w, nil
}

// Close implements Source.
func (w *web) Close() { w.client.CloseIdleConnections() }

// List implements data.Source.
func (w *web) List(ctx context.Context) (*data.Listing, error) {
	origin := w.base.JoinPath(escaped(w.dataset.Path)).String()
	files := []data.File{{Path: path.Base(w.dataset.Path), SHA256: w.dataset.SHA256}}
	if !w.dataset.Single {
		text, err := w.list(ctx)
		if err != nil {
			return nil, fmt.Errorf("list dataset: %w", err)
		}
		if files, err = ParseList(text); err != nil {
			return nil, fmt.Errorf("list dataset: %s: %w", w.server.List, err)
		}
	}
	if err := each(ctx, len(files), func(ctx context.Context, i int) error { return w.look(ctx, &files[i]) }); err != nil {
		return nil, fmt.Errorf("list dataset: %w", err)
	}
	return bounded(&w.server, origin, files)
}

// bounded makes the listing of a dataset that is not larger than its server may
// give.
func bounded(server *Server, origin string, files []data.File) (*data.Listing, error) {
	listing, err := data.NewListing(origin, files)
	if err == nil && server.SizeMax > 0 && listing.Bytes > server.SizeMax {
		err = fmt.Errorf("list dataset: it has %d bytes, and %d are allowed: %w", listing.Bytes, server.SizeMax, errRefused)
	}
	return listing, err
}

// list reads the list of files.
func (w *web) list(ctx context.Context) (text []byte, err error) {
	err = repeat(ctx, &w.server, func(ctx context.Context, alive func()) error {
		response, err := w.get(ctx, path.Join(w.dataset.Path, w.server.List), nil)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return statusError(response)
		}
		text, err = io.ReadAll(io.LimitReader(living{response.Body, alive}, listBytesMax+1))
		if err == nil && len(text) > listBytesMax {
			err = lasting{fmt.Errorf("%s has more than %d bytes", w.server.List, listBytesMax)}
		}
		return err
	})
	return text, err
}

// look finds out the size and the version of a file, and whether parts of it
// can be asked for: it asks for the first byte.
func (w *web) look(ctx context.Context, f *data.File) error {
	return repeat(ctx, &w.server, func(ctx context.Context, _ func()) error {
		response, err := w.get(ctx, w.pathOf(f), http.Header{"Range": {"bytes=0-0"}})
		if err != nil {
			return err
		}
		defer response.Body.Close()
		f.Tag, f.Whole = tagOf(response), false
		switch response.StatusCode {
		case http.StatusPartialContent:
			first, _, total, ok := contentRange(response)
			if !ok || first != 0 {
				return lasting{fmt.Errorf("%s: the server gives another part than was asked for", f.Path)}
			}
			f.Size = total
			_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 2)) // so that the connection is used again
			return nil
		case http.StatusRequestedRangeNotSatisfiable: // of an empty file
			if total, ok := strings.CutPrefix(response.Header.Get("Content-Range"), "bytes */"); ok && total == "0" {
				f.Size, f.Whole = 0, true
				return nil
			}
		case http.StatusOK:
			if response.ContentLength < 0 {
				return lasting{fmt.Errorf("%s: the server does not tell its size", f.Path)}
			}
			f.Size, f.Whole = response.ContentLength, true
			return nil
		}
		return statusError(response)
	})
}

func (w *web) pathOf(f *data.File) string {
	if w.dataset.Single {
		return w.dataset.Path
	}
	return path.Join(w.dataset.Path, f.Path)
}

// Open implements data.Source.
func (w *web) Open(ctx context.Context, f *data.File, offset, length int64) (io.ReadCloser, error) {
	open := func(ctx context.Context, offset, length int64) (io.ReadCloser, error) {
		return w.part(ctx, f, offset, length)
	}
	return &ranged{ctx: ctx, open: open, stall: w.server.StallMax, wait: w.server.Wait, at: offset, end: offset + length}, nil
}

// part asks for a part of a file; of one that comes only in one piece it leaves
// out the beginning.
func (w *web) part(ctx context.Context, f *data.File, offset, length int64) (io.ReadCloser, error) {
	header := http.Header{}
	if !f.Whole {
		header.Set("Range", fmt.Sprintf("bytes=%d-%d", offset, offset+length-1))
		if condition := ifRange(f.Tag); condition != "" {
			header.Set("If-Range", condition)
		}
	}
	response, err := w.get(ctx, w.pathOf(f), header)
	if err != nil {
		return nil, err
	}
	if err := w.check(response, f, offset, length); err != nil {
		response.Body.Close()
		return nil, err
	}
	if f.Whole && offset > 0 {
		if _, err := io.CopyN(io.Discard, response.Body, offset); err != nil {
			response.Body.Close()
			return nil, err
		}
	}
	return response.Body, nil
}

// check compares an answer with what was asked for, and with the listing.
func (w *web) check(response *http.Response, f *data.File, offset, length int64) error {
	switch {
	case response.StatusCode == http.StatusOK && f.Whole:
		if response.ContentLength != f.Size {
			return data.ErrChanged
		}
	case response.StatusCode == http.StatusOK, response.StatusCode == http.StatusRequestedRangeNotSatisfiable,
		response.StatusCode == http.StatusPreconditionFailed, response.StatusCode == http.StatusNotFound:
		return data.ErrChanged // all of another version, or nothing there any more
	case response.StatusCode == http.StatusPartialContent && !f.Whole:
		first, last, total, ok := contentRange(response)
		if ok && total != f.Size {
			return data.ErrChanged
		}
		if !ok || first != offset || last != offset+length-1 {
			return lasting{fmt.Errorf("%s: the server gives another part than was asked for", f.Path)}
		}
	default:
		return statusError(response)
	}
	if tagOf(response) != f.Tag {
		return data.ErrChanged
	}
	return nil
}

// get sends a request. Only the server's own host is told the credentials.
func (w *web) get(ctx context.Context, name string, header http.Header) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base.JoinPath(escaped(name)).String(), nil)
	if err != nil {
		return nil, lasting{err}
	}
	if header != nil {
		request.Header = header
	}
	request.Header.Set("User-Agent", "nomadlike")
	request.Header.Set("Accept-Encoding", "identity")
	if w.authorization != "" {
		request.Header.Set("Authorization", w.authorization)
	}
	response, err := w.client.Do(request)
	if err != nil {
		return nil, plain(err)
	}
	if coding := response.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		response.Body.Close()
		return nil, lasting{fmt.Errorf("%s: the server packs it as %s, though it was asked not to", path.Base(name), coding)}
	}
	return response, nil
}

// plain leaves out the address, which may hold what is nobody's business after
// a redirect.
func plain(err error) error {
	var whole *url.Error
	if errors.As(err, &whole) {
		return whole.Err
	}
	return err
}

// escaped lets every element of a path stand for itself.
func escaped(name string) string {
	elements := strings.Split(name, "/")
	for i := range elements {
		elements[i] = url.PathEscape(elements[i])
	}
	return strings.Join(elements, "/")
}

// tagOf is which version of a file an answer is about.
func tagOf(response *http.Response) string {
	if tag := response.Header.Get("ETag"); tag != "" {
		return tag
	}
	return response.Header.Get("Last-Modified")
}

// ifRange is the condition under which a part is worth having; weak tags are no
// condition, but are compared when the answer is there.
func ifRange(tag string) string {
	if strings.HasPrefix(tag, "W/") {
		return ""
	}
	return tag
}

// contentRange reads "bytes first-last/total".
func contentRange(response *http.Response) (first, last, total int64, ok bool) {
	text, ok := strings.CutPrefix(response.Header.Get("Content-Range"), "bytes ")
	span, size, found := strings.Cut(text, "/")
	from, to, dash := strings.Cut(span, "-")
	if !ok || !found || !dash {
		return 0, 0, 0, false
	}
	number := func(text string) int64 {
		n, err := strconv.ParseUint(text, 10, 62)
		if err != nil {
			ok = false
		}
		return int64(n)
	}
	first, last, total = number(from), number(to), number(size)
	return first, last, total, ok && first <= last && last < total
}

// statusError says what a server has answered. Answers that a repetition would
// get again are lasting.
func statusError(response *http.Response) error {
	err := fmt.Errorf("%s: the server answers %s", path.Base(response.Request.URL.Path), response.Status)
	switch code := response.StatusCode; {
	case code == http.StatusNotFound, code == http.StatusGone:
		return fmt.Errorf("%w: %w", err, fs.ErrNotExist)
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code >= 500:
		return err
	}
	return lasting{err}
}
