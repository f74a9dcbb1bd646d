Error: no container says what it runs: the command is in the image alone

  on no-command.yaml line 2:
  2 │ kind: Job
    │ ^^^^^^^^^

  Hint: write command into the container; docker inspect IMAGE shows Entrypoint and Cmd
