// The memory limit of this program, and its source.
#pragma once

#include <string>

namespace attn {

struct MemoryLimit {
    double bytes;
    const char* words;  ///< "this container may use": the text before the number
};

/// The least of the machine's memory; memory.max, memory.high and memory.limit_in_bytes of the
/// process's control group and its ancestors, in both versions; `ulimit -v` and `ulimit -d`. The
/// limit does not depend on free memory: a question has the same answer whatever else runs.
/// `groups` is the mount point of control groups, `own` the file that lists the process's; without
/// them that limit does not apply. Sources: cgroups(7), getrlimit(2).
/// Of several equal processes on this machine together, each has `ulimit` for itself.
MemoryLimit memory_limit(double processes = 1, const std::string& groups = "/sys/fs/cgroup",
                         const std::string& own = "/proc/self/cgroup");

}  // namespace attn
