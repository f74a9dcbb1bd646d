say() { echo "@@$1=$2"; }
say shm.mib "$(df -Pm /dev/shm 2>/dev/null | awk 'NR==2{print $4}')"
say disk.mib "$(df -Pm . 2>/dev/null | awk 'NR==2{print $4}')"
say memlock.kib "$(ulimit -l 2>/dev/null)"
say files.open "$(ulimit -n 2>/dev/null)"
say rdma.devices "$(ls /sys/class/infiniband 2>/dev/null | tr '\n' ',')"
say rdma.nodes "$(ls /dev/infiniband 2>/dev/null | tr '\n' ',')"
say net.interfaces "$(ls /sys/class/net 2>/dev/null | tr '\n' ',')"
say nvidia.driver "$(awk '/NVRM/{for(i=1;i<=NF;i++)if($i~/^[0-9]+\.[0-9.]+$/){print $i;exit}}' /proc/driver/nvidia/version 2>/dev/null)"
say cuda.version "$(sed -n 's/.*"version" *: *"\([0-9][^"]*\)".*/\1/p' /usr/local/cuda/version.json 2>/dev/null | head -1)"
say cann.version "$(sed -n 's/^[Vv]ersion=//p' /usr/local/Ascend/ascend-toolkit/latest/version.cfg /usr/local/Ascend/version.info 2>/dev/null | head -1)"
say clock "$(date +%s)"
lost=
for name in $NOMADLIKE_CHECK_NAMES; do
	if command -v getent >/dev/null 2>&1; then getent hosts "$name" >/dev/null 2>&1 || lost="$lost$name,"; fi
done
say names.unresolved "$lost"
if [ -n "$MASTER_ADDR" ] && command -v getent >/dev/null 2>&1; then
	if getent hosts "$MASTER_ADDR" >/dev/null 2>&1; then say master.unresolved ""; else say master.unresolved "$MASTER_ADDR"; fi
fi
unset=
for name in $NOMADLIKE_CHECK_VARIABLES; do
	if ! env | grep -q "^$name="; then unset="$unset$name,"; fi
done
say command.unset "$unset"
env | while IFS= read -r line; do case "$line" in NCCL_*|HCCL_*|GLOO_*|CUDA_*|PYTORCH_*|ASCEND_*|OMP_*|MS_SCHED_*|MASTER_*|WORLD_SIZE=*|RANK=*|RANK_TABLE_FILE=*|*_VISIBLE_DEVICES=*) echo "@@env.$line";; esac; done
