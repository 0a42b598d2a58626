#!/bin/sh
#SBATCH --job-name=attn --array=1-4 --cpus-per-task=1 --requeue --open-mode=append
# One task answers every fourth record. A task that is killed and requeued goes on where it stopped.
# Submit: sbatch slurm.sh; when all tasks are done: paste -d '\n' part.1 ... | sed '/^$/d'
attn batch requests.ndjson --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" \
    --jobs "$SLURM_CPUS_PER_TASK" --resume "part.$SLURM_ARRAY_TASK_ID" || [ $? -eq 1 ]
