package data

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// BenchmarkPrepare copies a large file, and many small ones, by a Store and by
// the programs that people would use, each onto the disk.
func BenchmarkPrepare(b *testing.B) {
	chance := rand.New(rand.NewPCG(1, 1))
	sets := map[string]string{"large": b.TempDir(), "small": b.TempDir()}
	data := make([]byte, 1<<20)
	for i := range data {
		data[i] = byte(chance.Uint32())
	}
	large, err := os.Create(filepath.Join(sets["large"], "file"))
	if err != nil {
		b.Fatal(err)
	}
	for range 512 {
		if _, err := large.Write(data); err != nil {
			b.Fatal(err)
		}
	}
	if err := large.Close(); err != nil {
		b.Fatal(err)
	}
	for i := range 10_000 {
		name := filepath.Join(sets["small"], strconv.Itoa(i%100), strconv.Itoa(i))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(name, data[i:i+4096+i%8192], 0o644); err != nil {
			b.Fatal(err)
		}
	}
	bytes := map[string]int64{"large": 512 << 20, "small": 10_000 * 8192}
	for _, kind := range []string{"large", "small"} {
		source := sets[kind]
		programs := map[string][]string{"cp": {"cp", "-r", source, "TO"}}
		if _, err := exec.LookPath("rsync"); err == nil {
			programs["rsync"] = []string{"rsync", "-r", source, "TO"}
		}
		if kind == "large" {
			programs["dd"] = []string{"dd", "if=" + source + "/file", "of=TO/file", "bs=1M", "status=none"}
		}
		b.Run(kind+"/store", func(b *testing.B) {
			b.SetBytes(bytes[kind])
			for range b.N {
				b.StopTimer()
				s := openStore(b, b.TempDir())
				b.StartTimer()
				if _, err := prepare(b, s, source, "a"); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(kind+"/again", func(b *testing.B) {
			s := openStore(b, b.TempDir())
			if _, err := prepare(b, s, source, "a"); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := prepare(b, s, source, "a"); err != nil {
					b.Fatal(err)
				}
			}
		})
		for _, name := range []string{"dd", "cp", "rsync"} {
			command, ok := programs[name]
			if !ok {
				continue
			}
			b.Run(kind+"/"+name, func(b *testing.B) {
				b.SetBytes(bytes[kind])
				for range b.N {
					b.StopTimer()
					to := b.TempDir()
					args := make([]string, len(command))
					for i, word := range command {
						switch word {
						case "TO":
							args[i] = to
						case "of=TO/file":
							args[i] = "of=" + to + "/file"
						default:
							args[i] = word
						}
					}
					b.StartTimer()
					if err := exec.Command(args[0], args[1:]...).Run(); err != nil {
						b.Fatal(err)
					}
					if err := syncAll(to); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
