package look

import (
	"fmt"
	"html/template"
	"image"
	"image/png"
	"os"
	"path/filepath"
)

var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Pictures that differ</title>
<style>
body { font: 14px/1.5 system-ui, sans-serif; margin: 24px; }
section { border-top: 1px solid #ccc; padding: 12px 0; }
.row { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 12px; }
figure { margin: 0; } img { max-width: 100%; border: 1px solid #ccc; } figcaption { color: #555; }
</style>
<h1>{{.Summary}}</h1>
{{if .Faults}}<h2>Faults</h2><ul>{{range .Faults}}<li>{{.}}</li>{{end}}</ul>{{end}}
{{range .Differences}}<section id="{{.Name}}"><h2>{{.Name}}: {{.Reason}}</h2><div class="row">
{{if .Was}}<figure><a href="differ/{{.Name}}-was.png"><img src="differ/{{.Name}}-was.png" alt="before"></a><figcaption>before</figcaption></figure>{{end}}
{{if .Is}}<figure><a href="differ/{{.Name}}-is.png"><img src="differ/{{.Name}}-is.png" alt="after"></a><figcaption>after</figcaption></figure>{{end}}
{{if .Marked}}<figure><a href="differ/{{.Name}}-marked.png"><img src="differ/{{.Name}}-marked.png" alt="difference"></a><figcaption>difference</figcaption></figure>{{end}}
</div></section>{{end}}
<p>If the pages are meant to look so: make pictures UPDATE=1, and commit the pictures.</p>
</html>
`))

// Write writes the page of differences into folder and returns its path.
func (r *Report) Write(folder string) (string, error) {
	pictures := filepath.Join(folder, "differ")
	if err := os.MkdirAll(pictures, 0o755); err != nil {
		return "", err
	}
	for _, one := range r.Differences {
		for kind, picture := range map[string]image.Image{"was": one.Was, "is": one.Is, "marked": one.Marked} {
			if picture == nil {
				continue
			}
			if err := writePicture(filepath.Join(pictures, fmt.Sprintf("%s-%s.png", one.Name, kind)), picture); err != nil {
				return "", err
			}
		}
	}
	path := filepath.Join(folder, "index.html")
	file, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	if err := page.Execute(file, r); err != nil {
		return "", err
	}
	return path, file.Close()
}

func writePicture(path string, picture image.Image) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := png.Encode(file, picture); err != nil {
		return err
	}
	return file.Close()
}
