package prepare

import (
	"maps"
	"strings"
	"testing"
)

// cann is what CANN's set_env.sh looks like.
const cann = `# CANN
export ASCEND_TOOLKIT_HOME=/usr/local/Ascend/ascend-toolkit/latest
export LD_LIBRARY_PATH=${ASCEND_TOOLKIT_HOME}/lib64:/usr/local/Ascend/driver/lib64:$LD_LIBRARY_PATH
export PYTHONPATH="${ASCEND_TOOLKIT_HOME}/python/site-packages:$PYTHONPATH"
export PATH=${ASCEND_TOOLKIT_HOME}/bin:$PATH

ASCEND_OPP_PATH='/opt/$opp'
`

func TestEnvFile(t *testing.T) {
	got, err := parseEnvFile(cann, map[string]string{"PATH": "/usr/bin:/bin"})
	if err != nil {
		t.Fatal(err)
	}
	const home = "/usr/local/Ascend/ascend-toolkit/latest"
	want := map[string]string{
		"ASCEND_TOOLKIT_HOME": home, "LD_LIBRARY_PATH": home + "/lib64:/usr/local/Ascend/driver/lib64",
		"PYTHONPATH": home + "/python/site-packages", "PATH": home + "/bin:/usr/bin:/bin", "ASCEND_OPP_PATH": "/opt/$opp",
	}
	if !maps.Equal(got, want) {
		t.Fatalf("%q", got)
	}
	for _, bad := range []string{"if true", "export A", "A=$(date)", "A=`date`", "A=b c", "A=\"b", "1A=b", "A=b;c=d", "A=${B:+x}", "source x"} {
		if _, err := parseEnvFile("OK=1\n"+bad, nil); err == nil || !strings.Contains(err.Error(), "client.env_file_line line=2") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
