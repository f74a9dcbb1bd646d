"""The client against a cluster, which the environment names as for the command line: `go test ./scripts/python` starts one."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import nomadlike  # noqa: E402

FILE = """
variable "lr" {
  default = 0.5
}
variable "then" {
  default = "true"
}
job "train" {
  resources {
    cpu    = 0.05
    memory = "32MiB"
  }
  task {
    command = "sh -c 'for s in 1 2 3; do echo step=$s loss=$s.${var.lr}; done; echo warned >&2; ${var.then}'"
  }
}
"""


class Cluster(unittest.TestCase):
    client: nomadlike.Client

    @classmethod
    def setUpClass(cls):
        cls.client = nomadlike.Client()

    @classmethod
    def tearDownClass(cls):
        cls.client.close()

    def test_a_job_from_beginning_to_end(self):
        job = self.client.submit(FILE, name="whole", variables={"lr": 5})
        self.assertGreater(job.number, 0)
        lines = ["step=%d loss=%d.5" % (s, s) for s in (1, 2, 3)]
        self.assertEqual(lines, list(job.logs(follow=True)))
        self.assertEqual("succeeded", job.wait(timeout=20, check=True)["state"])
        self.assertEqual((lines[1:], ["warned"]), (list(job.logs(tail=2)), list(job.logs(stream="stderr"))))
        self.assertEqual(3.5, job.result("loss"))
        self.assertEqual([1.5, 3.5, 3], [job.results("loss")["loss"][what] for what in ("min", "max", "count")])
        self.assertEqual(3, len(job.metrics("loss")["ranks"][0]["series"][0]["points"]))
        self.assertIn("event.job.submitted", [event["id"] for event in job.events()])
        for id in (str(job.number), job.id[:8], "whole"):
            self.assertEqual(job.id, self.client.job(id).id)
        self.assertIn(job.id, [one["id"] for one in self.client.jobs(name="whole", limit=1)])
        with self.assertRaisesRegex(nomadlike.NotFound, "no accuracy"):
            job.result("accuracy")
        job.delete()
        with self.assertRaisesRegex(nomadlike.NotFound, "there is no job"):
            job.status()

    def test_a_job_that_fails(self):
        job = self.client.submit(FILE, name="fails", variables={"then": "exit 7"})
        with self.assertRaises(nomadlike.JobFailed) as caught:
            job.wait(timeout=20, check=True)
        self.assertEqual((7, "failed"), (caught.exception.exit_code, caught.exception.state))
        self.assertIn("exit code 7", str(caught.exception))

    def test_a_dict_is_watched_and_stopped(self):
        job = self.client.submit({"name": "long", "task": {"command": "sleep 300"}, "resources": [{"cpu": 0.05, "memory": 32 << 20}]})
        states = []
        for detail in job.watch(timeout=20):
            states.append(detail["state"])
            if detail["state"] == "running" and "stopping" not in states:
                with self.assertRaises(nomadlike.WaitedTooLong):
                    job.wait(timeout=0.2)
                job.stop("enough")
        self.assertEqual("stopped", states[-1])
        self.assertIn("running", states)

    def test_a_sweep(self):
        jobs = {lr: self.client.submit(FILE, name="lr%d" % lr, variables={"lr": lr}) for lr in (3, 1, 2)}
        for job in jobs.values():
            job.wait(timeout=20, check=True)
        self.assertEqual([1, 2, 3], sorted(jobs, key=lambda lr: jobs[lr].result("loss")))
        found = self.client.results(list(jobs.values()), "loss")
        self.assertEqual([3.3, 3.1, 3.2], [found[job.id]["loss"]["last"]["value"] for job in jobs.values()])

    def test_submitting_twice_is_submitting_once(self):
        one, two = [self.client.submit(FILE, name="once", key="a-key") for _ in range(2)]
        self.assertEqual(one.id, two.id)
        one.wait(timeout=20)

    def test_the_folder_goes_with_the_job(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {
                "job.hcl": FILE.replace("resources {", 'workdir = "src"\n  resources {', 1),
                "src/run.sh": "echo from the folder; ls",
                "src/.gitignore": "*.bin\n",
                "src/large.bin": "x" * 1000,
                "src/.git/config": "x",
            }.items():
                os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
                with open(os.path.join(folder, name), "w") as file:
                    file.write(text)
            job = self.client.submit(os.path.join(folder, "job.hcl"), name="coded", variables={"then": "sh run.sh"})
            code = self.client.send_code(os.path.join(folder, "src"))
        job.wait(timeout=20, check=True)
        self.assertEqual(["from the folder", "run.sh"], list(job.logs())[3:])
        self.assertEqual(code, job.status()["job"]["workdir"]["tree"])
        again = self.client.submit(FILE, name="coded-again", variables={"then": "sh run.sh"}, code=code)
        again.wait(timeout=20, check=True)
        self.assertEqual("from the folder", list(again.logs())[3])

    def test_everything_that_is_wrong_is_said(self):
        with self.assertRaises(nomadlike.Invalid) as caught:
            self.client.submit('job "x" {\n  nodes = 0\n  fluff = 1\n  task {\n    command = ""\n  }\n}\n')
        self.assertEqual(["2", "3", "5"], sorted(problem.params["line"] for problem in caught.exception.details))
        self.assertRegex(str(caught.exception), r'line 3: there is no argument "fluff"')
        with self.assertRaisesRegex(nomadlike.Invalid, "git"):
            self.client.submit(FILE.replace("resources {", 'workdir {\n    git = "https://git.example/a.git"\n  }\n  resources {', 1))
        with self.assertRaises(nomadlike.Invalid):
            self.client.validate(FILE, variables={"unknown": 1})
        self.assertTrue(self.client.validate(FILE)["valid"])

    def test_who_is_nobody(self):
        with nomadlike.Client(token="0" * 36, language="zh") as stranger, self.assertRaises(nomadlike.Unauthorized) as caught:
            stranger.jobs_list()
        self.assertEqual(401, caught.exception.status)
        self.assertIn("令牌", str(caught.exception))

    def test_events_come_as_they_happen(self):
        begun = self.client.index_of(self.client.jobs_list(limit=1))
        self.assertGreater(begun, 0)
        job = self.client.submit(FILE, name="seen")
        seen = []
        for event in self.client.events(topics=["job"], index=begun):
            seen.append((event["id"], event.get("job_id")))
            if seen[-1] == ("event.job.succeeded", job.id):
                break
        self.assertEqual(1, seen.count(("event.job.submitted", job.id)))


if __name__ == "__main__":
    unittest.main()
