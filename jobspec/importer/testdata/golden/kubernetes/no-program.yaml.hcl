Error: no container says what it runs: the command is in the image alone

  on no-program.yaml line 5:
  5 │ template: {spec: {containers: [{name: a, image: a, args: [--lr, "0.1"]}]}}
    │ ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

  Hint: write command into the container; docker inspect IMAGE shows Entrypoint and Cmd
