"""What this package itself tells people; all else comes from the cluster."""

from typing import Any, Mapping

# By id, in English and Chinese; ID.hint is what helps.
_TEXTS = {
    "python.unreachable": ("{address} cannot be reached: {reason}", "无法连接 {address}：{reason}"),
    "python.unreachable.hint": (
        "is the agent running, and is the address right? NOMADLIKE_ADDR and `nomadlike login` set it",
        "代理是否在运行，地址是否正确？可用 NOMADLIKE_ADDR 或 `nomadlike login` 设置",
    ),
    "python.broken": ("{address} broke off before its answer was whole: {reason}", "{address} 在回答完整之前断开：{reason}"),
    "python.unknown": (
        "{address} broke off before it answered: whether {request} was done is not known",
        "{address} 在回答之前断开：{request} 是否已执行无法得知",
    ),
    "python.unknown.hint": ("look how it stands before you ask for it again", "请先查看当前状态，再决定是否重试"),
    "python.untrusted": ("{address} is no server of the cluster: {reason}", "{address} 不是该集群的服务器：{reason}"),
    "python.untrusted.hint": (
        "it was not told the token. Was the cluster's CA replaced, or is the address another cluster's? any `nomadlike` command, or `nomadlike login`, learns the CA",
        "令牌没有发送给它。集群的 CA 是否已更换，或该地址属于另一个集群？运行任一 `nomadlike` 命令或 `nomadlike login` 即可更新 CA",
    ),
    "python.no_ca": ("it is not known by which CA the cluster is recognised", "不知道以哪个 CA 识别该集群"),
    "python.no_ca.hint": (
        "sign in once with `nomadlike login -ca-fingerprint`, or set NOMADLIKE_CACERT to the file of the CA",
        "请先用 `nomadlike login -ca-fingerprint` 登录一次，或将 NOMADLIKE_CACERT 设为 CA 文件",
    ),
    "python.bad_ca": ("the CA cannot be read: {reason}", "无法读取 CA：{reason}"),
    "python.bad_address": ("{address} is no address of an agent", "{address} 不是代理的地址"),
    "python.bad_address.hint": ("for example https://10.0.0.1:4646; several with commas", "例如 https://10.0.0.1:4646；多个地址以逗号分隔"),
    "python.bad_context": ("{path} cannot be read: {reason}", "无法读取 {path}：{reason}"),
    "python.bad_context.hint": ("`nomadlike login` writes it anew", "`nomadlike login` 会重新写入"),
    "python.foreign": (
        "{address} answered with status {status}, and not as an agent does: {answer}",
        "{address} 返回状态 {status}，不是代理的回答：{answer}",
    ),
    "python.redirect": ("{address} wants to send the request on to {target}, which is not followed", "{address} 要求转到 {target}，不予跟随"),
    "python.not_json": ("{address} answered with what is not JSON: {reason}", "{address} 的回答不是 JSON：{reason}"),
    "python.file": ("{path} cannot be read: {reason}", "无法读取 {path}：{reason}"),
    "python.git_code": ("code of a git server is not fetched from Python", "Python 客户端不从 git 服务器获取代码"),
    "python.git_code.hint": ("submit with `nomadlike job run`, or clone it and give code=DIRECTORY", "请用 `nomadlike job run` 提交，或先克隆再指定 code=目录"),
    "python.set_of_job": ("values are changed in a job file only, not in a dict", "只能修改任务文件中的值，不能用于 dict"),
    "python.set_of_job.hint": ("change the dict before it is submitted", "请在提交前直接修改 dict"),
    "python.waited": ("job {name} has not ended after {seconds} seconds", "任务 {name} 在 {seconds} 秒后仍未结束"),
    "python.job_failed": ("job {name} is {state}, exit code {code} ({reason})", "任务 {name} 的状态为 {state}，退出码 {code}（{reason}）"),
    "python.no_metric": ("job {name} has measured no {metric}", "任务 {name} 没有指标 {metric}"),
    "python.no_metric.hint": (
        "metrics are taken from lines such as `step=1 loss=0.5`; `nomadlike job metrics` lists them",
        "指标取自形如 `step=1 loss=0.5` 的输出行；`nomadlike job metrics` 会列出它们",
    ),
}


def text(language: str, id: str, params: Mapping[str, Any]) -> str:
    """The text of an id, "" without one."""
    both = _TEXTS.get(id)
    return both[language == "zh"].format(**params) if both else ""
