package config

import (
	"strings"
	"testing"

	"nomadlike/internal/messages"
)

// TestStorageConfig: what is wrong with a storage is told with its place.
func TestStorageConfig(t *testing.T) {
	yes := true
	for name, c := range map[string]struct {
		blocks []StorageBlock
		want   string
	}{
		"name":        {[]StorageBlock{{Name: "A b", Path: "/a"}}, "client.storage[0]"},
		"twice":       {[]StorageBlock{{Name: "a", Path: "/a"}, {Name: "a", Path: "/b"}}, "two storages have the name a"},
		"path":        {[]StorageBlock{{Name: "a", Path: "a"}}, "client.storage[0].path"},
		"word":        {[]StorageBlock{{Name: "a", Path: "/a/{who}"}}, "contains an unknown placeholder"},
		"kind of two": {[]StorageBlock{{Name: "a", Path: "/a"}, {Name: "b", Path: "/b", Serves: []string{"x"}}}, "client.storage[1].serves"},
		"kind":        {[]StorageBlock{{Name: "a", Path: "/a", Serves: []string{"datasets"}}}, "datasets is not one of algorithm, dataset"},
	} {
		_, err := Load(nil, Settings{Dev: &yes, Client: &ClientBlock{Storages: c.blocks}}, messages.English)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRemoteConfig: what is wrong with the server of a storage is told.
func TestRemoteConfig(t *testing.T) {
	yes, word, plain, size := true, "{who}", "/etc/secret", "0B"
	for name, c := range map[string]struct {
		block StorageBlock
		says  string
	}{
		"two places":      {StorageBlock{Path: "/a", HTTP: &StorageHTTPBlock{URL: "https://h"}}, "either a path or one block"},
		"scheme":          {StorageBlock{HTTP: &StorageHTTPBlock{URL: "ftp://h/x"}}, "not a server address"},
		"user":            {StorageBlock{HTTP: &StorageHTTPBlock{URL: "https://u:p@h/x"}}, "not a server address"},
		"query":           {StorageBlock{HTTP: &StorageHTTPBlock{URL: "https://h/x?y"}}, "not a server address"},
		"host of the job": {StorageBlock{HTTP: &StorageHTTPBlock{URL: "https://{project}.h/x"}}, "not a server address"},
		"word":            {StorageBlock{HTTP: &StorageHTTPBlock{URL: "https://h/{who}"}}, "contains an unknown placeholder"},
		"way out":         {StorageBlock{HTTP: &StorageHTTPBlock{URL: "https://h/a/../b"}}, "not a path below a server"},
		"plain secret":    {StorageBlock{HTTP: &StorageHTTPBlock{URL: "http://h/", AuthorizationFile: &plain}}, "over https only"},
		"size":            {StorageBlock{HTTP: &StorageHTTPBlock{URL: "https://h/", SizeMax: &size}}, "size_max"},
		"bucket":          {StorageBlock{S3: &StorageS3Block{URL: "https://h", Bucket: "../a"}}, "not a bucket name"},
		"path of a store": {StorageBlock{S3: &StorageS3Block{URL: "https://h/x", Bucket: "abc"}}, "not a server address"},
		"prefix":          {StorageBlock{S3: &StorageS3Block{URL: "https://h", Bucket: "abc", Prefix: &word}}, "contains an unknown placeholder"},
		"outputs":         {StorageBlock{Serves: []string{"output"}, HTTP: &StorageHTTPBlock{URL: "https://h/"}}, "output is not one of algorithm, dataset, model"},
	} {
		t.Run(name, func(t *testing.T) {
			c.block.Name = "far"
			_, err := Load(nil, Settings{Dev: &yes, Client: &ClientBlock{Storages: []StorageBlock{c.block}}}, messages.English)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v", err)
			}
		})
	}
}
