#!/bin/sh
# Runs a command that takes long, and says before what it does and how long that usually
# takes, and behind how long it took: stage.sh "WHAT, about HOW LONG" COMMAND [ARGUMENT …]
what=$1
shift
began=$(date +%s)
printf '== %s  %s\n' "$(date +%H:%M:%S)" "$what"
"$@"
code=$?
took=$(($(date +%s) - began))
[ "$code" -eq 0 ] && how='done' || how="FAILED with $code"
printf '== %s  %s: %s, %d min %02d s\n' "$(date +%H:%M:%S)" "${what%%,*}" "$how" $((took / 60)) $((took % 60))
[ -z "$EBPFPROF_STAGES" ] || printf '%s\n' "$(printf '%3d min %02d s  %s, %s' $((took / 60)) $((took % 60)) "${what%%,*}" "$how")" >>"$EBPFPROF_STAGES"
exit "$code"
