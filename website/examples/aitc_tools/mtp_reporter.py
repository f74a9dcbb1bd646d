"""report_envs for scripts that call it before init_process_group.

The agent looks at the environment of every rank by itself (checkpoint {
precheck = true }), so nothing has to be sent anywhere: the call only returns.
"""


def report_envs(*_args, **_kwargs):
    """Does nothing, whatever it is given, and never fails."""
