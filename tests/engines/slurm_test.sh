#!/bin/sh
# data/engines/slurm.sh answers as one process does, on a cluster of this machine alone:
# sh slurm_test.sh ATTN. Exit code 77: skipped.
# shellcheck disable=SC1091,SC2034,SC2154  # what setup.sh reads and sets
set -eu
ENGINE=slurm ATTN=$1
. "$(dirname "$0")/setup.sh"
export PATH="$PATH:/usr/sbin"
for program in slurmctld slurmd munged; do
    command -v $program >/dev/null || skip "needs $program (Debian: slurm-wlm, munge)"
done
[ "$(id -u)" -eq 0 ] || skip "needs root, to start the daemons"

host=$(hostname -s)
mkdir -m 700 munge
mkdir state spool
dd if=/dev/urandom of=munge/key bs=32 count=1 2>/dev/null
chmod 400 munge/key
cat >slurm.conf <<END
ClusterName=attn
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
SlurmUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ReturnToService=2
KillWait=1
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
END
export SLURM_CONF="$work/slurm.conf"

stop_cluster() {
    for daemon in slurmd slurmctld munge/; do
        case $daemon in */) file=${daemon}pid ;; *) file=$daemon.pid ;; esac
        [ ! -s "$file" ] || kill "$(cat "$file")" 2>/dev/null || true
    done
    sleep 1
    rm -rf "$work"
}
trap stop_cluster EXIT
munged --force --key-file="$work/munge/key" --socket="$work/munge/socket" --pid-file="$work/munge/pid" \
    --log-file="$work/munge/log" --seed-file="$work/munge/seed"
slurmctld
slurmd

# wait_until SECONDS WHAT COMMAND...: until the command succeeds.
wait_until() {
    seconds=$1 what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        seconds=$((seconds - 1))
        [ "$seconds" -gt 0 ] || { squeue; tail -n 20 "$work/slurmctld.log"; fail "$what"; }
        sleep 1
    done
}
has_idle_node() { sinfo -h -o %t | grep -q idle; }
is_pending() { squeue -h -j "${job}_2" -o %t | grep -q PD; }
has_ended() { [ -z "$(squeue -h -j "$job")" ]; }

interrupt_by 'sleep 600'
wait_until 30 "the node did not start" has_idle_node
job=$(sbatch --parsable "$recipes/slurm.sh")
wait_until 60 "the second task did not start" test -e interrupted
scontrol requeue "${job}_2"
wait_until 60 "the second task was not requeued" is_pending
# It would wait for two minutes.
scontrol update "JobId=${job}_2" StartTime=now
wait_until 180 "the array did not end" has_ended
paste -d '\n' part.1 part.2 part.3 part.4 | sed '/^$/d' >results.ndjson
check_results
