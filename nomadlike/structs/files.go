package structs

// FileRequest asks a node for what an allocation has written. Paths begin with
// FilesOutputs, the directory of the job's output, or FilesLogs, what the rank
// printed; "" lists these two. Of a directory the entries are given, of a file
// its bytes.
type FileRequest struct {
	AllocID string `json:"alloc_id"`
	Path    string `json:"path"`
	// List asks for the entry itself and, of a directory, its entries, and for
	// no bytes.
	List   bool  `json:"list,omitempty"`
	Offset int64 `json:"offset,omitempty"` // first byte; negative counts from the end
	Limit  int64 `json:"limit,omitempty"`  // bytes at most; 0: all
	// Digest asks of a file for the SHA-256 of the bytes from Offset on, Limit of them,
	// which comes with Entry: with List instead of the bytes, otherwise before them. Of
	// more than FileDigestMax it is not told.
	Digest bool `json:"digest,omitempty"`
}

// The directories of a FileRequest.
const (
	FilesOutputs = "outputs"
	FilesLogs    = "logs"
)

// Limits of a FileRequest.
const (
	FilePathMax    = 4096 // bytes
	FileEntriesMax = 5000 // of one directory

	// FileDigestMax bounds the bytes whose digest is told at a time: a node reads them
	// before it answers.
	FileDigestMax = 256 << 20
)

// FileChunk is a piece of the answer to a FileRequest. The first one has Entry,
// and the Entries of a directory that was listed; others have Data. EOF is set
// on the last one.
type FileChunk struct {
	Entry   *FileEntry  `json:"entry,omitempty"`
	Entries []FileEntry `json:"entries,omitempty"` // by name
	More    bool        `json:"more,omitempty"`    // the directory has more than FileEntriesMax
	Offset  int64       `json:"offset,omitempty"`  // with Entry: of the first byte that follows
	SHA256  string      `json:"sha256,omitempty"`  // with Entry: 64 digits, of the bytes that were asked for; "": not asked, or by an agent that cannot tell
	Data    []byte      `json:"data,omitempty"`
	EOF     bool        `json:"eof,omitempty"`
}

// FileEntry is a file or directory that a job wrote.
type FileEntry struct {
	Name     string   `json:"name"`
	Dir      bool     `json:"dir,omitempty"`
	Link     bool     `json:"link,omitempty"` // or another special file: it cannot be read
	Size     int64    `json:"size"`
	Modified UnixNano `json:"modified"`
}
