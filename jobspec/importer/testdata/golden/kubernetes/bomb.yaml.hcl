Error: with its aliases the document has more than 20000 parts

  on bomb.yaml line 1:
  1 │ apiVersion: batch/v1
    │ ^^^^^^^^^^^^^^^^^^^^

  Hint: write out what *NAME names, or take out what the job does not need
