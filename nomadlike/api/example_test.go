package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// A program submits a job file, waits for the end of the job, and shows what it printed.
func Example() {
	ctx := context.Background()
	dir, err := api.ContextDir(os.Getenv) // what `nomadlike login` remembers
	if err != nil {
		log.Fatal(err)
	}
	remembered, err := api.LoadContext(dir)
	if err != nil {
		log.Fatal(err)
	}
	client, err := api.New(api.Config{Address: remembered.Address, Token: remembered.Token, CAPEM: []byte(remembered.CA)})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	file, err := os.ReadFile("train.hcl")
	if err != nil {
		log.Fatal(err)
	}
	submitted, err := client.SubmitJob(ctx, api.JobRequest{HCL: string(file), Variables: map[string]string{"lr": "0.1"}}, "")
	var refused *structs.Error
	if errors.As(err, &refused) {
		log.Fatalf("%s (%s): %v", refused.Code, refused.ID, refused.Details) // all that is wrong with the file
	} else if err != nil {
		log.Fatal(err)
	}

	query := &api.Query{} // the server holds the question until something is new
	for {
		detail, meta, err := client.Job(ctx, submitted.JobID, query)
		if err != nil {
			log.Fatal(err)
		}
		if detail.State.Terminal() {
			fmt.Println(detail.State, detail.ExitCode)
			break
		}
		query.Index = meta.Index
	}

	list, _, err := client.Allocations(ctx, submitted.JobID, api.AllocationFilter{}, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, rank := range list.Allocations {
		printed, err := client.Logs(ctx, rank.ID, api.LogOptions{})
		if err != nil {
			log.Fatal(err)
		}
		_, err = io.Copy(os.Stdout, printed)
		if err := errors.Join(err, printed.Close()); err != nil {
			log.Fatal(err)
		}
	}
}
