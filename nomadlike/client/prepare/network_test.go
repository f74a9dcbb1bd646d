package prepare

import (
	"testing"

	"nomadlike/nomadlike/launch"
)

func TestTasksOffTheNodesNetworkAreToldNoInterface(t *testing.T) {
	attributes := map[string]string{"net.interface": "eth0", "net.network": "10.0.0.0/24", "driver.docker.host_network": "false"}
	if name, network := launch.RanksNetwork("exec", attributes); name != "eth0" || network != "10.0.0.0/24" {
		t.Errorf("exec: %q, %q", name, network)
	}
	if name, network := launch.RanksNetwork("docker", attributes); name != "" || network != "" {
		t.Errorf("docker on a bridge: %q, %q", name, network)
	}
	attributes["driver.docker.host_network"] = "true"
	if name, _ := launch.RanksNetwork("docker", attributes); name != "eth0" {
		t.Errorf("docker on the node's network: %q", name)
	}
}
