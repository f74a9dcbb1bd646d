Error: there is no command

  on no-command.params line 3:
  3 │ 
    │ 

  Hint: write command=python3 train.py, or what is to run
