package structs

// What a server asks the node that has a storage for, of the bytes of named data.
const (
	DataAskManifest = "manifest" // take a piece of the manifest of what is uploaded
	DataAskMissing  = "missing"  // which chunks have to be sent
	DataAskPut      = "put"      // keep chunks
	DataAskFinish   = "finish"   // make the version of what was sent
	DataAskAbort    = "abort"    // forget what was sent
	DataAskList     = "list"     // a piece of the manifest of a version
	DataAskRead     = "read"     // chunks of a version
	DataAskVerify   = "verify"   // compare a version with its manifest
	DataAskRemove   = "remove"   // remove a version
	DataAskTake     = "take"     // make the version of what a job wrote; of agents from KeepProtocol on

	DataAskLeft  = "left"  // uploads of a kind on a storage to which nothing has come for a while
	DataAskClear = "clear" // forget one of them, and with End what was made of it

	DataAskOpen   = "open"   // begin an upload whose files come one by one
	DataAskFile   = "file"   // make a file of it, or go on with one
	DataAskOffset = "offset" // how far a file is
	DataAskWrite  = "write"  // keep bytes of a file
	DataAskDrop   = "drop"   // forget a file
	DataAskFiles  = "files"  // which files there are
	DataAskNames  = "names"  // take a piece of the list of files that must be there
	DataAskGather = "gather" // make the manifest of the files that came
)

// Bounds of a DataAsk.
const (
	DataAskChunksMax = 8_000    // chunks of one question, and of those that are sent or read at once
	DataAskBytesMax  = 8 << 20  // bytes of them, and of a piece of a manifest
	DataWrongMax     = 50       // names that a verification names
	DataFilesPage    = 1_000    // files of one DataAskFiles
	DataListMax      = 32 << 20 // bytes of a list of files that must be there
)

// DataPlace says where a version of named data lies, as the paths of storages are
// filled in.
type DataPlace struct {
	Project string `json:"project"`
	Owner   string `json:"owner"` // of the object: {user} in a path
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Storage string `json:"storage"`
	Version int    `json:"version"`
	Digest  string `json:"digest"`         // of the version's manifest
	Base    int    `json:"base,omitempty"` // an earlier version, of whose files the same are shared
}

// DataAsk asks a node about the bytes of named data on one of its storages. The server
// has authorised the user.
type DataAsk struct {
	What   string      `json:"what"`
	Place  DataPlace   `json:"place"`
	Upload string      `json:"upload,omitempty"` // of what is being uploaded, or of one verification
	Chunks []CodeChunk `json:"chunks,omitempty"` // at most DataAskChunksMax
	Offset int64       `json:"offset,omitempty"` // of the piece in the manifest
	Data   []byte      `json:"data,omitempty"`   // a piece of the manifest, or the bytes of Chunks one after the other
	End    bool        `json:"end,omitempty"`    // with the last piece of the manifest
	From   *DataOutput `json:"from,omitempty"`   // of DataAskTake

	// Of an upload whose files come one by one: the file that is meant, with Offset and
	// Data of it, and what was announced of all.
	File  *DataFile `json:"file,omitempty"`
	Files int       `json:"files,omitempty"`
	Bytes int64     `json:"bytes,omitempty"`
}

// DataFile is a file of an upload whose files come one by one.
type DataFile struct {
	ID         string `json:"id"`               // its name in the upload, drawn from its path
	Path       string `json:"path"`             // below the version's directory
	Size       int64  `json:"size"`             // that it is to have
	Offset     int64  `json:"offset"`           // bytes that are on the disk
	SHA256     string `json:"sha256,omitempty"` // that it is to have, in hexadecimal digits; "": nobody said
	Executable bool   `json:"executable,omitempty"`
	Dir        bool   `json:"dir,omitempty"` // an empty directory
}

// DataReply is what the node says.
type DataReply struct {
	Missing []int       `json:"missing,omitempty"` // indexes of the chunks that were asked about
	Data    []byte      `json:"data,omitempty"`    // a piece of the manifest, or the bytes of the chunks
	Total   int64       `json:"total,omitempty"`   // bytes of the manifest
	Done    bool        `json:"done,omitempty"`    // what takes long is over
	Bytes   int64       `json:"bytes,omitempty"`   // of what takes long: looked at so far
	All     int64       `json:"all,omitempty"`     // of how many
	Files   int         `json:"files,omitempty"`   // of a version that is made, or was verified
	Digest  string      `json:"digest,omitempty"`  // of a version that was made of what a job wrote, or of the manifest of files that came
	Copied  int64       `json:"copied,omitempty"`  // bytes of that which had to be copied
	Wrong   []DataWrong `json:"wrong,omitempty"`   // at most DataWrongMax
	Wrongs  int         `json:"wrongs,omitempty"`  // how many there are
	File    *DataFile   `json:"file,omitempty"`    // the one that was asked about
	List    []DataFile  `json:"list,omitempty"`    // at most DataFilesPage, by their ids
}

// What may be wrong with a name of a version.
const (
	DataGone    = "gone"    // it is not there
	DataChanged = "changed" // it is something else, or has other bytes
	DataExtra   = "extra"   // it is not of the version
	DataHalf    = "half"    // not all of it has come
)

// DataWrong is a name that is not as the version's manifest says.
type DataWrong struct {
	Path string `json:"path"`
	What string `json:"what"` // gone, changed or extra
}
