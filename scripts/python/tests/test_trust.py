"""Who is told a token. `go test ./scripts/python` starts those who ask for it: they count what they are told."""

import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import nomadlike  # noqa: E402


class Trust(unittest.TestCase):
    def setUp(self):
        with open(os.environ["TRUST"]) as file:
            self.at = json.load(file)

    def test_a_server_of_the_cluster_is(self):
        client = nomadlike.Client(self.at["server"], "secret", ca=self.at["ca"])
        for _ in range(2):  # the second time on the same connection
            self.assertEqual({"jobs": []}, client.jobs_list())
        client.close()

    def test_others_are_not(self):
        for who, why in (("node", "/client/n1"), ("stranger", "certificate"), ("namesake", "certificate")):
            with self.assertRaisesRegex(nomadlike.Untrusted, why) as caught:
                nomadlike.Client(self.at[who], "secret", ca=self.at["ca"]).jobs_list()
            self.assertIn("not told the token", caught.exception.hint)
        with self.assertRaises(nomadlike.Unavailable):
            nomadlike.Client(self.at["plain"], "secret", ca=self.at["ca"], retry_for=0).jobs_list()

    def test_the_ca_that_another_program_learned_is_taken(self):
        with tempfile.TemporaryDirectory() as folder:
            saved = {"address": self.at["stranger"], "ca": self.at["ca"], "token": "secret"}
            path = os.path.join(folder, "context.json")
            with open(path, "w") as file:
                json.dump(saved, file)
            client = nomadlike.Client(env={"NOMADLIKE_CONFIG_DIR": folder})
            with self.assertRaises(nomadlike.Untrusted):
                client.jobs_list()
            with open(path, "w") as file:
                json.dump(dict(saved, ca=self.at["ca_of_stranger"]), file)
            self.assertEqual({"jobs": []}, client.jobs_list())
            client.close()


if __name__ == "__main__":
    unittest.main()
