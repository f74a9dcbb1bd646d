say() { echo "@@$1=$2"; }
# Each look has its own deadline: a file system or a name server that hangs costs its own line.
if timeout 2 true 2>/dev/null; then within() { timeout 2 "$@"; }; else within() { "$@"; }; fi
# Ranks' names stand in the file that the agent wrote, and are asked of nobody else.
in_hosts() { awk -v n="$1" '{sub(/#.*/,"");for(i=2;i<=NF;i++)if($i==n)f=1}END{exit !f}' /etc/hosts 2>/dev/null; }
say clock "$(date +%s)"
say shm.mib "$(within df -Pm /dev/shm 2>/dev/null | awk 'NR==2{print $4}')"
say disk.mib "$(within df -Pm . 2>/dev/null | awk 'NR==2{print $4}')"
say memlock.kib "$(ulimit -l 2>/dev/null)"
say files.open "$(ulimit -n 2>/dev/null)"
say rdma.devices "$(ls /sys/class/infiniband 2>/dev/null | tr '\n' ',')"
say rdma.nodes "$(ls /dev/infiniband 2>/dev/null | tr '\n' ',')"
say net.interfaces "$(ls /sys/class/net 2>/dev/null | tr '\n' ',')"
say nvidia.driver "$(awk '/NVRM/{for(i=1;i<=NF;i++)if($i~/^[0-9]+\.[0-9.]+$/){print $i;exit}}' /proc/driver/nvidia/version 2>/dev/null)"
say cuda.version "$(sed -n 's/.*"version" *: *"\([0-9][^"]*\)".*/\1/p' /usr/local/cuda/version.json 2>/dev/null | head -1)"
say cann.version "$(sed -n 's/^[Vv]ersion=//p' /usr/local/Ascend/ascend-toolkit/latest/version.cfg /usr/local/Ascend/version.info 2>/dev/null | head -1)"
lost=
for name in $NOMADLIKE_CHECK_NAMES; do
	in_hosts "$name" || lost="$lost$name,"
done
say names.unresolved "$lost"
case "$MASTER_ADDR" in
"") ;;
*:*) say master.unresolved "";;
*[!0-9.]*)
	if in_hosts "$MASTER_ADDR"; then
		say master.unresolved ""
	else case " $NOMADLIKE_CHECK_NAMES " in
	*" $MASTER_ADDR "*) say master.unresolved "$MASTER_ADDR";;
	*)
		if command -v getent >/dev/null 2>&1; then
			if within getent hosts "$MASTER_ADDR" >/dev/null 2>&1; then say master.unresolved ""; else say master.unresolved "$MASTER_ADDR"; fi
		fi;;
	esac; fi;;
*) say master.unresolved "";;
esac
unset=
for name in $NOMADLIKE_CHECK_VARIABLES; do
	if ! env | grep -q "^$name="; then unset="$unset$name,"; fi
done
say command.unset "$unset"
env | while IFS= read -r line; do case "$line" in NCCL_*|HCCL_*|GLOO_*|CUDA_*|PYTORCH_*|ASCEND_*|OMP_*|MS_SCHED_*|MASTER_*|WORLD_SIZE=*|RANK=*|RANK_TABLE_FILE=*|*_VISIBLE_DEVICES=*) echo "@@env.$line";; esac; done
