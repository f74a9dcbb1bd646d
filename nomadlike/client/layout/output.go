package layout

import (
	"encoding/json"
	"fmt"
	"os"
)

// Output is where the output of an allocation lies. It is kept in the allocation's
// record, so that it is found when the allocation has ended and the servers say
// nothing of it any more.
type Output struct {
	Root string `json:"root"` // nothing leads out of it
	Path string `json:"path"` // Root, or below it
}

// WriteOutput notes where the output of an allocation lies.
func (l Layout) WriteOutput(id string, output Output) error {
	text, err := json.Marshal(output)
	if err == nil {
		err = os.WriteFile(l.output(id), text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("keep place of the output: %w", err)
	}
	return nil
}

// ReadOutput returns what WriteOutput noted.
func (l Layout) ReadOutput(id string) (Output, error) {
	var output Output
	text, err := os.ReadFile(l.output(id))
	if err == nil {
		err = json.Unmarshal(text, &output)
	}
	return output, err
}
