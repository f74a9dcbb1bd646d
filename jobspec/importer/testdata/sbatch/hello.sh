#!/bin/bash
#SBATCH -J hello
#SBATCH -t 5
#SBATCH -n 1
#SBATCH --mem=2G
python3 hello.py
