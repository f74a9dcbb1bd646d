package remote

import (
	"net/url"
	"time"

	"nomadlike/nomadlike/client/data"
)

// Server is what an administrator says of a web server or an object store.
type Server struct {
	// URL is its address: scheme, host, and for web servers the beginning of all
	// paths. Nothing else is in it.
	URL string
	S3  *S3 // nil: a web server

	List          string   // name of the list of files beside them; "": ListDefault
	CAFile        string   // of the authorities that sign its certificate; "": the system's
	RedirectHosts []string // "host" or "host:port", beside its own
	// AuthorizationFile holds the value of the header Authorization, which only
	// the server's own host is told. "": none. Web servers only.
	AuthorizationFile string
	SizeMax           int64 // bytes of one dataset; 0: what the disk has room for

	// StallMax is how long a server may send nothing; 0: StallMaxDefault.
	StallMax time.Duration
	// Wait is the pause before a request is repeated, and the door for tests; it
	// gets the number of the attempt, from 1 on. nil: it grows from half a second.
	Wait func(attempt int) time.Duration `json:"-"`
}

// S3 is what an object store needs beside.
type S3 struct {
	Bucket          string
	Region          string // "": RegionDefault
	PathStyle       bool   // the bucket stands in the path and not in the host name
	CredentialsFile string // as the AWS tools write it; "": requests are not signed
	Profile         string // of the file; "": default
}

// Defaults of Server and S3.
const (
	ListDefault     = "SHA256SUMS"
	RegionDefault   = "us-east-1"
	StallMaxDefault = 60 * time.Second
)

// Dataset is one dataset of a server.
type Dataset struct {
	Path   string // below the server's URL, or the key in the bucket: no "/" before or behind
	Single bool   // it is one file; otherwise all files of a list, or below a prefix
	SHA256 []byte // of the one file; nil when nobody says
}

// Open makes a source of a dataset. The files that the server names, with
// certificates and credentials, are read now, so that new ones count from the
// next dataset on. The caller closes what it gets.
func Open(server Server, dataset Dataset) (Source, error) {
	if server.StallMax <= 0 {
		server.StallMax = StallMaxDefault
	}
	if server.List == "" {
		server.List = ListDefault
	}
	if server.Wait == nil {
		server.Wait = func(attempt int) time.Duration { return pauseFirst << (attempt - 1) }
	}
	base, err := url.Parse(server.URL)
	if err != nil {
		return nil, err // the agent's configuration was checked
	}
	if server.S3 != nil {
		return openS3(server, base, dataset)
	}
	return openHTTP(server, base, dataset)
}

// Source is a data.Source with connections.
type Source interface {
	data.Source
	Close()
}

const (
	// attempts bounds how often a range is asked for without a byte coming of it.
	attempts   = 5
	pauseFirst = 500 * time.Millisecond
)
