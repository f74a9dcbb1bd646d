Error: a second job in one file; the first is at line 1

  on two-jobs.yaml line 7:
  7 │ kind: Job
    │ ^^^^^^^^^

  Hint: put each document into a file of its own and import them one by one
