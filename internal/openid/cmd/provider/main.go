// Command provider runs the OpenID Connect provider of the tests for those of the web
// pages: until its standard input ends. The argument is a file for the certificate that it goes
// by. It prints its own address; each line of standard input is one that people may come
// back to.
package main

import (
	"bufio"
	"encoding/pem"
	"fmt"
	"os"

	"nomadlike/internal/openid"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: provider CERTIFICATE")
		os.Exit(2)
	}
	provider := openid.Run()
	defer provider.Close()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: provider.Certificate().Raw})
	if err := os.WriteFile(os.Args[1], certificate, 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) // it ends with the process
	}
	fmt.Println(provider.URL)
	var back []string
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); { // it ends with whoever started this
		back = append(back, lines.Text())
		openid.SendsTo(back...)
		fmt.Println("sends to", lines.Text())
	}
}
