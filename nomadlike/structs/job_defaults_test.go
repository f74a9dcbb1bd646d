package structs

import "testing"

// TestDeepSpeedLauncher makes sure that one rank launches wherever deepspeed's own
// launcher is called, and every node where the command starts one node only.
func TestDeepSpeedLauncher(t *testing.T) {
	for command, want := range map[string]string{
		"deepspeed train.py --deepspeed":                   LauncherPDSH,
		"/opt/conda/bin/deepspeed train.py":                LauncherPDSH,
		"bash -c 'cd x && deepspeed train.py'":             LauncherPDSH,
		`bash -c "source env.sh; exec deepspeed train.py"`: LauncherPDSH,
		"python -m deepspeed.launcher.runner train.py":     LauncherPDSH,
		"bash run.sh": LauncherPDSH,
		"./run.sh":    LauncherPDSH,
		"torchrun train.py --deepspeed deepspeed.json":            LauncherNoSSH,
		"python -m torch.distributed.run train.py --deepspeed":    LauncherNoSSH,
		"accelerate launch train.py":                              LauncherNoSSH,
		"bash -c 'cd x && torchrun train.py --deepspeed ds.json'": LauncherNoSSH,
		"python3.11 train.py":                                     LauncherNoSSH,
		"./train":                                                 LauncherNoSSH,
		"":                                                        LauncherNoSSH,
	} {
		if got := deepSpeedLauncher(command); got != want {
			t.Errorf("%q: %s, want %s", command, got, want)
		}
	}
}
