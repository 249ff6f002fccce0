#!/usr/bin/env bash
# A Slurm of three nodes on this machine, for tests: all of it lies in one folder, and nothing outside is touched.
# Needs root, and Debian's slurm-wlm and munge.
#
#   cluster.sh start DIR      starts it; slurm.conf lies in DIR then
#   cluster.sh kill DIR NODE  ends a node (n0, n1, n2) with everything that runs on it, as a power cut would
#   cluster.sh stop DIR       ends everything
set -euo pipefail

command=$1 dir=$2
export SLURM_CONF="$dir/slurm.conf"
nodes=(n0 n1 n2)

# The first of four ports in a row on which nobody listens.
free_ports() {
    local first port
    for first in $(shuf -i 20000-29990 -n 50); do
        for port in "$first" $((first + 1)) $((first + 2)) $((first + 3)); do
            if (: >"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then continue 2; fi
        done
        printf '%s\n' "$first"
        return
    done
    return 1
}

configure() {
    local port host node number=0
    port=$(free_ports)
    host=$(hostname -s)
    mkdir -p "$dir/state"
    cat >"$SLURM_CONF" <<END
ClusterName=heatgrader
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge.socket
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool.%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdPidFile=$dir/slurmd.%n.pid
SlurmdLogFile=$dir/slurmd.%n.log
SlurmdParameters=config_overrides
# A node that is silent for so long is down.
SlurmdTimeout=6
ReturnToService=2
MinJobAge=3600
KillWait=5
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=2,sched_min_interval=100000
GresTypes=gpu
END
    for node in "${nodes[@]}"; do
        number=$((number + 1))
        printf 'NodeName=%s NodeHostname=%s NodeAddr=127.0.0.1 Port=%s CPUs=2 RealMemory=2000 Gres=gpu:1\n' \
            "$node" "$host" "$((port + number))" >>"$SLURM_CONF"
    done
    printf 'PartitionName=course Nodes=n[0-2] Default=YES State=UP\n' >>"$SLURM_CONF"
    # GPUs that are none, so that tasks can ask for one.
    printf 'Name=gpu File=/dev/null\n' >"$dir/gres.conf"
}

start() {
    mkdir -p "$dir"
    chmod 755 "$dir"
    dd if=/dev/urandom of="$dir/munge.key" bs=1024 count=1 status=none
    chmod 600 "$dir/munge.key"
    munged --force --key-file="$dir/munge.key" --socket="$dir/munge.socket" --pid-file="$dir/munged.pid" \
        --log-file="$dir/munged.log" --seed-file="$dir/munged.seed"
    configure
    slurmctld
    local node tries=0
    for node in "${nodes[@]}"; do
        slurmd -N "$node"
    done
    until [[ $(sinfo --noheader --Node --states=idle --format=%N 2>/dev/null | wc -l) == 3 ]]; do
        tries=$((tries + 1))
        if ((tries > 150)); then
            cat "$dir"/*.log >&2
            return 1
        fi
        sleep 0.2
    done
}

# The processes below this one, and it.
tree() {
    local child
    for child in $(pgrep -P "$1" || true); do
        tree "$child"
    done
    printf '%s\n' "$1"
}

# What runs for a node: its tasks know its name, and a step's daemon is their parent.
tasks_of() {
    local place pid parent
    for place in /proc/[0-9]*; do
        # No pipe into grep -q: it ends at the first match, and pipefail takes the writer's end for "not found".
        if grep -qzxF -e "SLURMD_NODENAME=$1" "$place/environ"; then
            pid=${place#/proc/}
            grep -qzxF -e "SLURM_CONF=$SLURM_CONF" "$place/environ" || continue
            parent=$(ps -o ppid= -p "$pid" | tr -d ' ')
            if [[ $(ps -o comm= -p "$parent") == slurmstepd* ]]; then tree "$parent"; else tree "$pid"; fi
        fi
    done 2>/dev/null | sort -u
}

# Ends the process whose number is in the file, if there is one.
end_daemon() {
    local pid
    if pid=$(cat "$1" 2>/dev/null); then kill -9 "$pid" 2>/dev/null || true; fi
}

end_node() {
    local pids
    # The daemon first, so that it reports nothing of what follows.
    end_daemon "$dir/slurmd.$1.pid"
    pids=$(tasks_of "$1")
    # shellcheck disable=SC2086 # Numbers, each a word.
    [[ -z $pids ]] || kill -9 $pids 2>/dev/null || true
    rm -f "$dir/slurmd.$1.pid"
}

stop() {
    local node file
    for node in "${nodes[@]}"; do
        end_node "$node"
    done
    for file in slurmctld munged; do
        end_daemon "$dir/$file.pid"
    done
}

case $command in
start) start ;;
kill) end_node "$3" ;;
stop) stop ;;
*) exit 2 ;;
esac
