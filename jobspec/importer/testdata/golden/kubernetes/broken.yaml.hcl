Error: the file is not YAML: line 4: did not find expected key

  on broken.yaml line 4:
  4 │ name: one
    │ ^^^^^^^^^

  Hint: look at the blanks in front of that line and the one before; tabs are not allowed there
